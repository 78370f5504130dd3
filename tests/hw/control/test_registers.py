"""The register bank: every register of the table answers as the table says."""

import random
from collections.abc import Awaitable, Callable
from itertools import product
from typing import Any

import pytest
from amaranth.hdl import Cat

from intloom.hw.bus.axi4 import Resp
from intloom.hw.control.registers import Registers, constants, writable_mask
from intloom.hw.spec.params import HardwareParams, preset
from intloom.hw.spec.regs import COUNTER_INDEX_BITS, COUNTERS, REGISTERS, Access
from intloom.hw.spec.regs import register as named
from tests.hw.streams import made, run, sink, source

PARAMS = preset("base")
FULL = 0xFFFF_FFFF


class Driver:
    """An AXI4-Lite master that pauses at random and checks that answers stay until they are taken."""

    def __init__(self, ctx: Any, bank: Registers, rng: random.Random, errors: bool = True) -> None:
        self.ctx, self.bus, self.rng, self.errors = ctx, bank.bus, rng, errors

    def _response(self, address: int, *, write: bool) -> Resp:
        known = any(r.offset == address and not (write and r.access is Access.RO) for r in REGISTERS)
        return Resp.OKAY if known or not self.errors else Resp.SLVERR

    async def pause(self, refused: Any = None) -> None:
        """Some cycles, in which `refused` must not be taken."""
        for _ in range(self.rng.choice([0, 0, 1, 3])):
            await self.ctx.tick()
            assert refused is None or not self.ctx.get(refused.ready), "one channel is taken without the other"

    async def read(self, address: int) -> int:
        ctx, bus = self.ctx, self.bus
        ctx.set(bus.ar.payload.addr, address)
        ctx.set(bus.ar.valid, 1)
        await ctx.tick().until(bus.ar.ready)
        ctx.set(bus.ar.valid, 0)
        while not ctx.get(bus.r.valid):
            await ctx.tick()
        first = ctx.get(bus.r.payload)
        await self.pause()
        assert (ctx.get(bus.r.valid), ctx.get(bus.r.payload)) == (1, first)
        ctx.set(bus.r.ready, 1)
        await ctx.tick()
        ctx.set(bus.r.ready, 0)
        assert first.resp == self._response(address, write=False)
        return int(first.data)

    async def write(self, address: int, value: int, strobes: int = 0b1111) -> None:
        ctx, bus = self.ctx, self.bus
        ctx.set(bus.aw.payload.addr, address)
        ctx.set(bus.w.payload, {"data": value, "strb": strobes})
        early, late = self.rng.sample([bus.aw, bus.w], 2)
        ctx.set(early.valid, 1)
        await self.pause(refused=early)
        ctx.set(late.valid, 1)
        await ctx.tick().until(bus.aw.ready & bus.w.ready)
        ctx.set(bus.aw.valid, 0)
        ctx.set(bus.w.valid, 0)
        # The response stays until it is taken, whatever is not on offer.
        ctx.set(bus.aw.payload.addr, self.rng.randrange(1 << len(bus.aw.payload.addr)))
        assert ctx.get(bus.b.valid)
        assert ctx.get(bus.b.payload.resp) == self._response(address, write=True)
        await self.pause()
        ctx.set(bus.b.ready, 1)
        await ctx.tick()
        ctx.set(bus.b.ready, 0)
        assert not ctx.get(bus.b.valid)


def _count(turn: int) -> int:
    """The value of the counter that is visited at this index."""
    return turn * 0x0101_0101 ^ 0x8000_0000 if turn < len(COUNTERS) else 0


def _scan_counters(bank: Registers) -> Callable[[Any], Awaitable[None]]:
    """Model of the counters: each value is present only while its index is visited."""

    async def process(ctx: Any) -> None:
        while True:
            for turn in range(1 << COUNTER_INDEX_BITS):
                ctx.set(bank.scan_index, turn)
                ctx.set(bank.count, _count(turn))
                await ctx.tick()

    return process


def _simulate(
    seed: int, body: Callable[[Any, Registers, Driver], Awaitable[None]], params: HardwareParams = PARAMS
) -> None:
    bank = made(Registers, params)

    async def testbench(ctx: Any) -> None:
        await body(ctx, bank, Driver(ctx, bank, random.Random(seed), params.register_errors))

    run(bank, testbench, background=[_scan_counters(bank)])


def test_resets_constants_and_inputs_read_back(seed: int) -> None:
    async def body(ctx: Any, bank: Registers, driver: Driver) -> None:
        rng = random.Random(seed)
        for register in REGISTERS:
            expected = register.reset
            if register.name in constants(PARAMS):
                expected = constants(PARAMS)[register.name]
            elif register in COUNTERS:
                expected = _count(COUNTERS.index(register))
            elif register.access is Access.RO:
                expected = rng.getrandbits(32)
                ctx.set(getattr(bank, register.name.lower()), expected)
            assert await driver.read(register.offset) == expected, register.name

    _simulate(seed, body)


def test_only_what_may_be_written_is(seed: int) -> None:
    async def body(ctx: Any, bank: Registers, driver: Driver) -> None:
        for register in REGISTERS:
            if register.access is not Access.RW:
                before = await driver.read(register.offset)
                await driver.write(register.offset, 0)
                assert await driver.read(register.offset) == before, register.name
                continue
            mask = writable_mask(register, PARAMS)
            await driver.write(register.offset, FULL)
            assert await driver.read(register.offset) == mask == ctx.get(getattr(bank, register.name.lower()))

    _simulate(seed, body)


def test_flags_are_set_by_hardware_and_cleared_by_ones(seed: int) -> None:
    async def body(ctx: Any, bank: Registers, driver: Driver) -> None:
        at = next(r.offset for r in REGISTERS if r.access is Access.W1C)
        ctx.set(bank.irq_status, 0b11)
        await ctx.tick()
        ctx.set(bank.irq_status, 0)
        assert await driver.read(at) == 0b11
        await driver.write(at, 0b11, strobes=0b1110)
        assert await driver.read(at) == 0b11
        await driver.write(at, 0b10)
        assert await driver.read(at) == 0b01

    _simulate(seed, body)


def test_flags_are_set_and_cleared_in_the_same_cycle(rng: random.Random) -> None:
    """An event wins over a clear of its flag, and leaves the other flags alone: every case of a cycle, by a model."""
    register = next(r for r in REGISTERS if r.access is Access.W1C)
    masks = [(1 << f.width) - 1 << f.lsb for f in register.fields]
    bank = made(Registers, PARAMS)
    bus = bank.bus
    seen: set[tuple[bool, bool, bool, bool]] = set()

    async def body(ctx: Any) -> None:
        flags = 0
        ctx.set(bus.b.ready, 1)
        ctx.set(bus.aw.payload.addr, register.offset)
        for _ in range(400):
            event, clear, writes = rng.choice([0, *masks, sum(masks)]), rng.randrange(4), rng.randrange(2)
            ctx.set(bank.irq_status, event)
            ctx.set(bus.w.payload, {"data": clear, "strb": 0b1111})
            ctx.set(bus.aw.valid, writes)
            ctx.set(bus.w.valid, writes)
            await ctx.tick()
            cleared = clear if writes else 0
            for mask in masks:
                seen.add((bool(flags & mask), bool(cleared & mask), bool(event & mask), bool(event & ~mask)))
            flags = flags & ~cleared | event
            assert ctx.get(bank.irq_status_value) == flags, (event, cleared)

    run(bank, body)
    assert seen == set(product([False, True], repeat=4)), "pending x cleared x set x another set"


@pytest.mark.parametrize("bits", [32, 33, 40, 64])
def test_the_base_has_every_address_bit(bits: int) -> None:
    params = PARAMS.replace(axi_addr_bits=bits)
    low, high = (writable_mask(named(name), params) for name in ("BASE_LOW", "BASE_HIGH"))
    assert high << 32 | low == (1 << bits) - params.word_bytes


def _written(strobes: int) -> int:
    return sum(0xFF << 8 * byte for byte in range(4) if strobes >> byte & 1)


@pytest.mark.parametrize("access", [Access.W1C, Access.WO])
def test_flags_and_commands_have_every_bit(access: Access, rng: random.Random) -> None:
    """A write clears the flags of its strobes, or gives a command for a cycle, after which the next write waits."""
    register = next(r for r in REGISTERS if r.access is access)
    bank = made(Registers, PARAMS)
    bus = bank.bus

    async def body(ctx: Any) -> None:
        flags = command = 0
        ctx.set(bus.b.ready, 1)
        for number in range(600):
            writes, here = rng.randrange(2), rng.random() < 0.8
            event, data, strobes = rng.getrandbits(32) & rng.getrandbits(32), rng.getrandbits(32), rng.randrange(16)
            if number % 2:
                # Each bit alone.
                data, strobes = 1 << number // 2 % 32, 0b1111
            ctx.set(bus.aw.payload.addr, register.offset if here else register.offset ^ 0x20)
            ctx.set(bus.w.payload, {"data": data, "strb": strobes})
            ctx.set(bus.aw.valid, writes)
            ctx.set(bus.w.valid, writes)
            if access is Access.W1C:
                ctx.set(bank.irq_status, event)
            waits = True
            while waits:
                *_, ready = await ctx.tick().sample(bus.aw.ready)
                assert not (ready and command)
                waits = bool(writes and not ready)
                written = data & _written(strobes) if ready and here else 0
                flags = flags & ~written | event
                command = written if access is Access.WO else 0
                found, expected = (
                    (bank.irq_status_value, flags)
                    if access is Access.W1C
                    else (getattr(bank, register.name.lower()), written)
                )
                assert ctx.get(found) == expected

    run(bank, body)


def test_commands_are_pulses(seed: int) -> None:
    pulses = []

    async def body(ctx: Any, bank: Registers, driver: Driver) -> None:
        at = next(r.offset for r in REGISTERS if r.access is Access.WO)
        driver.rng = random.Random(0)
        bus = bank.bus
        ctx.set(bus.aw.payload.addr, at)
        ctx.set(bus.w.payload, {"data": 0b10, "strb": 1})
        ctx.set(bus.aw.valid, 1)
        ctx.set(bus.w.valid, 1)
        for _ in range(5):
            pulses.append(ctx.get(bank.control))
            await ctx.tick()
            ctx.set(bus.aw.valid, 0)
            ctx.set(bus.w.valid, 0)

    _simulate(seed, body)
    assert pulses == [0, 0b10, 0, 0, 0]


def test_random_writes_follow_the_model(seed: int) -> None:
    """To all registers in any order; what hardware has to say does not change meanwhile, and no flag is set again."""

    async def body(ctx: Any, bank: Registers, driver: Driver) -> None:
        rng = random.Random(seed)
        flags = {r.name: rng.getrandbits(32) for r in REGISTERS if r.access is Access.W1C}
        for name, value in flags.items():
            ctx.set(getattr(bank, name.lower()), value)
        await ctx.tick()
        for name in flags:
            ctx.set(getattr(bank, name.lower()), 0)
        values = {r.name: await driver.read(r.offset) for r in REGISTERS}
        assert values.items() >= flags.items()
        for number in range(400):
            register = rng.choice([r for r in REGISTERS if r not in COUNTERS])
            data, strobes = rng.getrandbits(32), rng.randrange(16)
            # The lock, which ends most changes, comes late; before, its byte is not written.
            if register.name == "LOCK" and number < 200:
                strobes &= 0b1110
            await driver.write(register.offset, data, strobes)
            value, locked = values[register.name], bool(values["LOCK"])
            values[register.name] = Registers.model(register, PARAMS, value, data, strobes, locked=locked)
            register = rng.choice([register, rng.choice(REGISTERS)])
            assert await driver.read(register.offset) == values[register.name], register.name

    _simulate(seed, body)


def test_writes_follow_each_other_but_not_a_command(rng: random.Random) -> None:
    """With responses that are taken at once there is a write a cycle; START finds the settings written before it."""
    registers = [r for r in REGISTERS if r.access in (Access.RW, Access.WO)]

    async def body(ctx: Any, bank: Registers, _driver: Driver) -> None:
        bus, command, valid = bank.bus, False, False
        register, value = registers[0], 0
        ctx.set(bus.b.ready, 1)
        for _ in range(200):
            if not valid:
                register, value = rng.choice([named("CONTROL"), *registers]), rng.choice([0, 1, FULL])
                valid = rng.random() < 0.9
            ctx.set(bus.aw.payload.addr, register.offset)
            ctx.set(bus.w.payload, {"data": value, "strb": 0b1111})
            ctx.set(Cat(bus.aw.valid, bus.w.valid), 0b11 * valid)
            taken = valid and not command
            assert (ctx.get(bus.aw.ready), ctx.get(bus.w.ready)) == (taken, taken)
            await ctx.tick()
            assert ctx.get(bus.b.valid) == taken
            valid, command = valid and not taken, taken and register.access is Access.WO and value != 0

    _simulate(0, body)


def test_a_read_answers_after_the_latency() -> None:
    async def body(ctx: Any, bank: Registers, driver: Driver) -> None:
        ctx.set(bank.bus.ar.payload.addr, REGISTERS[0].offset)
        ctx.set(bank.bus.ar.valid, 1)
        for _ in range(Registers.READ_LATENCY):
            assert not ctx.get(bank.bus.r.valid)
            await ctx.tick()
            ctx.set(bank.bus.ar.valid, 0)
        assert ctx.get(bank.bus.r.valid)

    _simulate(1, body)


def test_every_write_has_its_response(rng: random.Random) -> None:
    """Writes that follow each other at once wait for the responses before them."""
    bank = made(Registers, PARAMS)
    bus, taken = bank.bus, list[int]()
    addresses = [4 * rng.randrange(1 << len(bus.aw.payload.addr) - 2) for _ in range(60)]
    known = {r.offset for r in REGISTERS if r.access is not Access.RO}
    data = [{"data": 0, "strb": 0}] * len(addresses)
    run(
        bank,
        source(bus.aw, [{"addr": address} for address in addresses], rng, 0.8),
        source(bus.w, data, rng, 0.8),
        sink(bus.b, taken, len(addresses), rng, 0.5),
    )
    assert taken == [Resp.OKAY if address in known else Resp.SLVERR for address in addresses]


@pytest.mark.parametrize("errors", [True, False])
def test_holes_read_as_zero(errors: bool, seed: int) -> None:
    """Also the one after the last counter, whose place the scan visits; `Driver` checks the responses."""
    holes = {at * 4 for at in range(1 << 8)} - {r.offset for r in REGISTERS}
    assert COUNTERS[-1].offset + 4 in holes

    async def body(ctx: Any, bank: Registers, driver: Driver) -> None:
        for address in (COUNTERS[-1].offset + 4, *driver.rng.sample(sorted(holes), 12)):
            await driver.write(address, FULL)
            assert await driver.read(address) == 0

    _simulate(seed, body, PARAMS.replace(register_errors=errors))
