"""The CPU's memory bridge: lines, words, strobes, order of writes and reads, errors; for every width of a beat."""

import random
from functools import partial
from typing import Any

import pytest

from intloom.hw.soc.dram_bridge import DramBridge
from intloom.hw.spec.params import preset
from tests.hw.protocols import check_burst
from tests.hw.soc.axi_memory import AxiMemory
from tests.hw.soc.wishbone_master import LINE_WORDS, read, read_line, write
from tests.hw.streams import run

PORTS = {
    **{name: preset(name) for name in ("nano", "small", "base")},
    "narrow": preset("base").replace(axi_data_bits=32),
    "wide": preset("nano").replace(axi_data_bits=128),
}


async def _writes(bridge: DramBridge, ctx: Any) -> None:
    """The bridge is not idle and reads nothing while a write has no response."""
    data, b, outstanding = bridge.data, bridge.memory.b, 0
    signals = (data.ack & data.we, b.valid & b.ready, bridge.idle, bridge.memory.ar.valid)
    async for *_, sent, answered, idle, reads in ctx.tick().sample(*signals):
        assert idle == (outstanding == 0) and not (reads and outstanding)
        outstanding += sent - answered


async def _bursts(bridge: DramBridge, word_bytes: int, ctx: Any) -> None:
    """Every burst has the constant fields of the DMA's."""
    aw, ar = bridge.memory.aw, bridge.memory.ar
    async for *_, writes, aw_payload, reads, ar_payload in ctx.tick().sample(
        aw.valid, aw.payload, ar.valid, ar.payload
    ):
        for valid, payload in ((writes, aw_payload), (reads, ar_payload)):
            if valid:
                check_burst(payload, word_bytes)


@pytest.mark.parametrize("name", PORTS)
def test_reads_return_what_was_written(name: str, rng: random.Random) -> None:
    params = PORTS[name]
    bridge = DramBridge(params)
    memory = AxiMemory(bridge.memory, params.beat_bytes, rng)
    model = [0] * (4 * LINE_WORDS)
    base = 0x1000_0000

    async def cpu(ctx: Any) -> None:
        for _ in range(60):
            at, value, sel = rng.randrange(len(model)), rng.getrandbits(32), rng.randrange(1, 16)
            mask = sum(0xFF << 8 * i for i in range(4) if sel >> i & 1)
            await write(ctx, bridge.data, base + at, value, sel)
            model[at] = (model[at] & ~mask) | (value & mask)
            if rng.random() < 0.3:
                line = rng.randrange(4) * LINE_WORDS
                assert await read_line(ctx, bridge.data, base + line) == model[line : line + LINE_WORDS]
            if rng.random() < 0.3:
                at = rng.randrange(len(model))
                assert await read(ctx, bridge.data, base + at) == model[at]

    run(
        bridge,
        cpu,
        background=[*memory.processes(), partial(_writes, bridge), partial(_bursts, bridge, params.beat_bytes)],
    )


def test_writes_without_a_response_are_bounded() -> None:
    """A write takes two cycles while its address and data are taken at once; the last response allowed is awaited."""
    bridge = DramBridge(preset("nano"))
    memory = bridge.memory

    async def bench(ctx: Any) -> None:
        ctx.set(memory.aw.ready, 1)
        ctx.set(memory.w.ready, 1)
        for member in ("we", "cyc", "stb"):
            ctx.set(getattr(bridge.data, member), 1)
        for _ in range(DramBridge.OUTSTANDING):
            for ack in (0, 1):
                assert ctx.get(bridge.data.ack) == ack
                await ctx.tick()
        for answered in (0, 1):
            for _ in range(9):
                assert not ctx.get(bridge.data.ack)
                await ctx.tick()
            ctx.set(memory.b.valid, not answered)
            await ctx.tick()
            ctx.set(memory.b.valid, 0)
            await ctx.tick()
            assert ctx.get(bridge.data.ack) != answered
            await ctx.tick()
        ctx.set(bridge.data.stb, 0)
        ctx.set(memory.b.valid, 1)
        for _ in range(DramBridge.OUTSTANDING):
            assert not ctx.get(bridge.idle)
            await ctx.tick()
        assert ctx.get(bridge.idle)

    run(bridge, bench)


def test_both_buses_are_served(rng: random.Random) -> None:
    """Lines and words, in beats of four words."""
    bridge = DramBridge(PORTS["base"])
    memory = AxiMemory(bridge.memory, 16, rng)
    words = [rng.getrandbits(32) for _ in range(8 * LINE_WORDS)]
    memory.words = {
        i // 4: sum(word << 32 * k for k, word in enumerate(words[i : i + 4])) for i in range(0, len(words), 4)
    }
    done: list[str] = []

    def master(name: str) -> Any:
        async def process(ctx: Any) -> None:
            for _ in range(10):
                line = rng.randrange(8) * LINE_WORDS
                assert await read_line(ctx, getattr(bridge, name), line) == words[line : line + LINE_WORDS]
                at = rng.randrange(len(words))
                assert await read(ctx, getattr(bridge, name), at) == words[at]
                # The data bus has priority: instructions are read while it pauses.
                for _ in range(rng.randrange(30)):
                    await ctx.tick()
            done.append(name)

        return process

    run(bridge, master("data"), master("fetch"), background=memory.processes())
    assert sorted(done) == ["data", "fetch"]


@pytest.mark.parametrize("writes", [False, True])
def test_an_error_is_reported_once(writes: bool, rng: random.Random) -> None:
    bridge = DramBridge(preset("nano"))
    memory = AxiMemory(bridge.memory, 4, rng)
    memory.bad = {5}
    errors = 0

    async def count(ctx: Any) -> None:
        nonlocal errors
        async for *_, error in ctx.tick().sample(bridge.error):
            errors += error

    async def cpu(ctx: Any) -> None:
        await write(ctx, bridge.data, 4, 1)
        if writes:
            await write(ctx, bridge.data, 5, 1)
        else:
            await read(ctx, bridge.data, 5)
        await read(ctx, bridge.data, 4)
        await ctx.tick()
        assert ctx.get(bridge.idle)

    run(bridge, cpu, background=[*memory.processes(), count])
    assert errors == 1
