"""The small slaves of the system: UART transmitter, register bridge, record of bus errors, timer."""

import random
from typing import Any

import pytest
from amaranth.hdl import Cat, Fragment

from intloom.hw.bus.axi4 import Resp
from intloom.hw.soc.bus_errors import BusErrors
from intloom.hw.soc.register_bridge import RegisterBridge
from intloom.hw.soc.timer import Timer
from intloom.hw.soc.uart import UartTransmitter
from intloom.hw.spec.regs import ADDRESS_BITS
from tests.hw.soc.wishbone_master import pause, read, write
from tests.hw.streams import run


@pytest.mark.parametrize("bit_cycles", [2, 5, 13, 40])
def test_the_uart_sends_frames(bit_cycles: int, rng: random.Random) -> None:
    uart = UartTransmitter(bit_cycles)
    sent = [rng.getrandbits(8) for _ in range(12)]
    line: list[int] = []

    async def listen(ctx: Any) -> None:
        bus = uart.bus
        async for *_, level, ack, access in ctx.tick().sample(uart.tx, bus.ack, bus.cyc & bus.stb):
            line.append(level)
            assert access or not ack

    async def cpu(ctx: Any) -> None:
        for byte in sent:
            await write(ctx, uart.bus, 0, byte | 0xABCD00)
            await pause(ctx, uart.bus, rng)
            assert await read(ctx, uart.bus, 0) == 0
        await ctx.tick().repeat(12 * bit_cycles)
        # Nothing of this is a write.
        for _ in range(5):
            await pause(ctx, uart.bus, rng)
            assert await read(ctx, uart.bus, 0) == 0
        await ctx.tick().repeat(12 * bit_cycles)

    run(uart, cpu, background=[listen])
    received, at = [], line.index(0)
    while 0 in line[at:]:
        assert line[at] == 0, "a byte that waits starts one cycle after the stop bit"
        bits = line[at : at + 10 * bit_cycles : bit_cycles]
        assert line[at : at + 10 * bit_cycles] == [bit for bit in bits for _ in range(bit_cycles)]
        assert (bits[0], bits[9]) == (0, 1)
        received.append(sum(b << i for i, b in enumerate(bits[1:9])))
        at += 10 * bit_cycles + 1
    assert received == sent


def _content(address: int) -> int:
    """Of each register other bits."""
    return (address * 0x9E37_79B1 ^ 0x5555_AAAA) & 0xFFFF_FFFF


class RegisterSlave:
    """Takes write address and data in either order, and answers with one response code."""

    def __init__(self, port: Any, response: Resp, rng: random.Random) -> None:
        self.port, self.response, self.rng = port, response, rng
        self.seen: list[tuple[str, int]] = []

    async def _take(self, ctx: Any, name: str) -> int:
        stream = getattr(self.port, name)
        for _ in range(self.rng.randrange(3)):
            await ctx.tick()
        ctx.set(stream.ready, 1)
        valid = 0
        while not valid:
            *_, valid, payload = await ctx.tick().sample(stream.valid, stream.payload)
        ctx.set(stream.ready, 0)
        value = int(payload.data | payload.strb << 32 if name == "w" else payload.addr)
        self.seen.append((name, value))
        return value

    async def _respond(self, ctx: Any, name: str, **fields: int) -> None:
        stream = getattr(self.port, name)
        ctx.set(stream.payload, {**fields, "resp": self.response})
        ctx.set(stream.valid, 1)
        ready = 0
        while not ready:
            *_, ready = await ctx.tick().sample(stream.ready)
        ctx.set(stream.valid, 0)

    async def process(self, ctx: Any) -> None:
        """Eight writes, each with a read after it."""
        for _ in range(8):
            for name in self.rng.sample(["aw", "w"], 2):
                await self._take(ctx, name)
            await self._respond(ctx, "b")
            address = await self._take(ctx, "ar")
            await self._respond(ctx, "r", data=_content(address))


@pytest.mark.parametrize("response", [Resp.OKAY, Resp.SLVERR])
def test_register_accesses_pass(response: Resp, rng: random.Random) -> None:
    bridge = RegisterBridge()
    slave = RegisterSlave(bridge.registers, response, rng)
    errors: list[int] = []
    # Strobes and word.
    data = [rng.getrandbits(36) for _ in range(8)]
    written, read_from = ([rng.randrange(1 << ADDRESS_BITS >> 2) for _ in range(8)] for _ in range(2))

    bus, requests = bridge.bus, [getattr(bridge.registers, name).valid for name in ("aw", "w", "ar")]

    async def watch(ctx: Any) -> None:
        async for *_, error, access, requested in ctx.tick().sample(bridge.error, bus.cyc & bus.stb, Cat(requests)):
            errors.append(error)
            assert access or not requested

    async def cpu(ctx: Any) -> None:
        for i in range(8):
            await write(ctx, bus, written[i], data[i] & 0xFFFF_FFFF, data[i] >> 32)
            await pause(ctx, bus, rng)
            assert await read(ctx, bus, read_from[i]) == _content(4 * read_from[i])
            await pause(ctx, bus, rng)

    run(bridge, cpu, slave.process, background=[watch])
    accesses = zip(written, data, read_from, strict=True)
    expected = [e for at, word, read_at in accesses for e in (("aw", 4 * at), ("w", word), ("ar", 4 * read_at))]
    assert sorted(slave.seen) == sorted(expected)
    assert sum(errors) == (0 if response == Resp.OKAY else 16)


def test_a_bus_error_is_read_once() -> None:
    errors = BusErrors()

    async def bench(ctx: Any) -> None:
        assert await read(ctx, errors.bus, 0) == 0
        ctx.set(errors.event, 1)
        await ctx.tick()
        ctx.set(errors.event, 0)
        await ctx.tick()
        await write(ctx, errors.bus, 0, 0)
        ctx.set(errors.bus.we, 0)
        for cyc, stb in ((1, 0), (0, 1)):
            # No access: the bus belongs to another device, or pauses.
            ctx.set(errors.bus.cyc, cyc)
            ctx.set(errors.bus.stb, stb)
            assert not ctx.get(errors.bus.ack)
            await ctx.tick()
        ctx.set(errors.bus.stb, 0)
        assert [await read(ctx, errors.bus, 0) for _ in range(2)] == [1, 0]

    run(errors, bench)


def test_an_error_in_the_cycle_of_an_access_is_not_lost(rng: random.Random) -> None:
    """All inputs change at random in every cycle; the next read that is an access returns what came since the last."""
    errors = BusErrors()
    coincidences = 0

    async def bench(ctx: Any) -> None:
        nonlocal coincidences
        occurred = 0
        for _ in range(400):
            cyc, stb, we, event = (rng.random() < chance for chance in (0.7, 0.7, 0.3, 0.3))
            for signal, value in (
                (errors.bus.cyc, cyc),
                (errors.bus.stb, stb),
                (errors.bus.we, we),
                (errors.event, event),
            ):
                ctx.set(signal, value)
            reads = cyc and stb and not we
            assert ctx.get(errors.bus.ack) == (cyc and stb)
            if reads:
                assert ctx.get(errors.bus.dat_r) == occurred
                coincidences += event
                occurred = 0
            occurred |= event
            await ctx.tick()

    run(errors, bench)
    assert coincidences > 10


def test_the_timer_follows_its_model_in_every_cycle(rng: random.Random) -> None:
    """All inputs change at random, and so does the count. Times are near it, or differ from such a time in one bit."""
    timer = Fragment.get(component := Timer(), None)
    # The first register that the timer assigns.
    count = timer.statements["sync"][0].lhs
    bus, interrupts = component.bus, 0

    async def bench(ctx: Any) -> None:
        nonlocal interrupts
        now, until, interrupt = 0, -1, 0
        for cycle in range(3000):
            # No access before the count has passed the register of the time as reset leaves it.
            cyc, stb, we = (cycle > 2 and rng.random() < chance for chance in (0.7, 0.7, 0.2))
            data = (now + rng.randrange(1, 5)) % (1 << 32) ^ (rng.random() < 0.4) << rng.randrange(32)
            for signal, value in ((bus.cyc, cyc), (bus.stb, stb), (bus.we, we), (bus.dat_w, data)):
                ctx.set(signal, value)
            assert (ctx.get(bus.ack), ctx.get(bus.dat_r)) == (cyc and stb, now)
            assert ctx.get(component.interrupt) == interrupt
            interrupts += now == until and not interrupt
            until, interrupt = (data, 0) if cyc and stb and we else (until, interrupt or now == until)
            await ctx.tick()
            now = (now + 1) % (1 << 32)
            if rng.random() < 0.02:
                ctx.set(count, now := rng.choice([2**32 - 1, rng.getrandbits(32)]))

    run(timer, bench)
    assert interrupts > 50
