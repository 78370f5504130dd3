"""The arbiter: masters write and read their own words through one memory."""

import random
from typing import Any

import pytest

from intloom.hw.soc.axi_arbiter import AxiArbiter
from intloom.hw.spec.params import preset
from tests.hw.soc.axi_memory import AxiMemory
from tests.hw.streams import run, sink, source


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_every_master_gets_its_own_words(rate: float, count: int, rng: random.Random) -> None:
    arbiter = AxiArbiter(preset("nano"), count)
    memory = AxiMemory(arbiter.memory, 4, rng, rate)
    masters, numbers = arbiter.masters, range(count)
    bursts = [[(256 * n + 16 * i, rng.randrange(1, 9)) for i in range(12)] for n in numbers]
    data = [[rng.getrandbits(32) for _, beats in bursts[n] for _ in range(beats)] for n in numbers]
    done: list[list[int]] = [[] for _ in numbers]
    got: list[list[Any]] = [[] for _ in numbers]

    def request(word: int, beats: int) -> dict[str, int]:
        return {"id": 1, "addr": 4 * word, "len": beats - 1, "size": 2, "burst": 1}

    def beats_of(n: int) -> list[dict[str, int]]:
        words = iter(data[n])
        return [
            {"data": next(words), "strb": 15, "last": int(i == beats - 1)}
            for _, beats in bursts[n]
            for i in range(beats)
        ]

    def reader(n: int) -> Any:
        async def process(ctx: Any) -> None:
            while len(done[n]) < len(bursts[n]):
                await ctx.tick()
            await source(masters[n].ar, [request(*b) for b in bursts[n]], rng, rate)(ctx)

        return process

    processes: list[Any] = []
    for n, master in enumerate(masters):
        processes += [
            source(master.aw, [request(*b) for b in bursts[n]], rng, rate),
            source(master.w, beats_of(n), rng, rate),
            sink(master.b, done[n], len(bursts[n]), rng, rate),
            reader(n),
            sink(master.r, got[n], len(data[n]), rng, rate),
        ]
    run(arbiter, *processes, background=memory.processes())
    layout = masters[0].r.payload.shape()
    for n in numbers:
        read = [layout.from_bits(bits) for bits in got[n]]
        assert [r.data for r in read] == data[n]
        assert {r.id for r in read} == {0}
    assert {(channel, number) for channel, number, _ in memory.order} == {(c, n) for c in ("ar", "aw") for n in numbers}
    # All masters wait at the beginning, so the first grants take turns.
    first = [number for channel, number, _ in memory.order if channel == "aw"][: 2 * count]
    assert rate < 1 or first == [(first[0] + i) % count for i in range(2 * count)]


def _set_random(ctx: Any, port: Any, rng: random.Random) -> dict[str, int]:
    """Drive all members of a payload with random bits; returns them."""
    values = {name: rng.getrandbits(len(port.payload[name])) for name in port.payload.shape().members}
    ctx.set(port.payload, values)
    return values


def _payload(ctx: Any, port: Any) -> dict[str, int]:
    payload = ctx.get(port.payload)
    return {name: payload[name] for name in port.payload.shape().members}


@pytest.mark.parametrize("channel", ["ar", "aw"])
@pytest.mark.parametrize("first", [0, 1])
def test_a_grant_stays_until_the_address_is_taken(channel: str, first: int, rng: random.Random) -> None:
    """Also if the other master requests meanwhile, which is then granted although the first requests again."""
    arbiter = AxiArbiter(preset("nano"))
    memory = getattr(arbiter.memory, channel)
    masters = [arbiter.masters[first ^ n] for n in range(2)]
    early, late = (getattr(master, channel) for master in masters)

    async def bench(ctx: Any) -> None:
        for _ in range(6):
            ctx.set(early.valid, 1)
            wanted = _set_random(ctx, early, rng) | {"id": first}
            for _ in range(rng.randint(1, 3)):
                assert ctx.get(memory.valid)
                assert _payload(ctx, memory) == wanted
                assert not ctx.get(early.ready)
                await ctx.tick()
            ctx.set(late.valid, 1)
            following = _set_random(ctx, late, rng) | {"id": first ^ 1}
            await ctx.tick().repeat(2)
            ctx.set(memory.ready, 1)
            for number, (port, other, payload) in enumerate(((early, late, wanted), (late, early, following))):
                assert _payload(ctx, memory) == payload
                assert ctx.get(port.ready)
                assert not ctx.get(other.ready)
                await ctx.tick()
                if port is early:
                    again = _set_random(ctx, early, rng) | {"id": first}
                ctx.set(port.valid, port is early)
                if channel == "aw":
                    await _finish(ctx, masters[number])
            assert _payload(ctx, memory) == again
            await ctx.tick()
            ctx.set(early.valid, 0)
            ctx.set(memory.ready, 0)
            if channel == "aw":
                await _finish(ctx, masters[0])

    async def _finish(ctx: Any, master: Any) -> None:
        """The only beat of a write burst."""
        assert not ctx.get(memory.valid), "the burst before it is not complete"
        ctx.set(master.w.payload.last, 1)
        ctx.set(master.w.valid, 1)
        ctx.set(arbiter.memory.w.ready, 1)
        await ctx.tick()
        ctx.set(master.w.valid, 0)

    run(arbiter, bench)


@pytest.mark.parametrize("owner", [0, 1, 2])
def test_write_data_pass_after_their_address_only(owner: int, rng: random.Random) -> None:
    arbiter = AxiArbiter(preset("nano"), 3)
    masters, memory = arbiter.masters, arbiter.memory

    async def bench(ctx: Any) -> None:
        ctx.set(memory.aw.ready, 1)
        ctx.set(memory.w.ready, 1)
        payloads = [_set_random(ctx, master.w, rng) for master in masters]
        for master in masters:
            ctx.set(master.w.payload.last, 0)
            ctx.set(master.w.valid, 1)
        for _ in range(3):
            assert not ctx.get(memory.w.valid)
            assert not any(ctx.get(master.w.ready) for master in masters)
            await ctx.tick()
        ctx.set(masters[owner].aw.valid, 1)
        await ctx.tick()
        ctx.set(masters[owner].aw.valid, 0)
        for last in (0, 0, 1):
            ctx.set(masters[owner].w.payload.last, last)
            payloads[owner]["last"] = last
            assert ctx.get(memory.w.valid)
            assert _payload(ctx, memory.w) == payloads[owner]
            assert [ctx.get(master.w.ready) for master in masters] == [n == owner for n in range(3)]
            await ctx.tick()
        assert not ctx.get(memory.w.valid)

    run(arbiter, bench)


@pytest.mark.parametrize("channel", ["r", "b"])
def test_a_response_goes_to_the_master_that_its_identifier_names(channel: str, rng: random.Random) -> None:
    """With all of its bits, but the identifier."""
    arbiter = AxiArbiter(preset("nano"), 3)
    memory = getattr(arbiter.memory, channel)
    masters = [getattr(master, channel) for master in arbiter.masters]

    async def bench(ctx: Any) -> None:
        taken = True
        for _ in range(80):
            if taken:
                payload, offered = _set_random(ctx, memory, rng), rng.getrandbits(1)
                to = payload["id"] % 3
                ctx.set(memory.payload.id, to)
            ready = [rng.getrandbits(1) for _ in masters]
            ctx.set(memory.valid, offered)
            for master, accepts in zip(masters, ready, strict=True):
                ctx.set(master.ready, accepts)
            assert [ctx.get(master.valid) for master in masters] == [offered and n == to for n in range(3)]
            assert ctx.get(memory.ready) == ready[to]
            taken = not offered or ready[to]
            assert _payload(ctx, masters[to]) == payload | {"id": 0}
            await ctx.tick()

    run(arbiter, bench)
