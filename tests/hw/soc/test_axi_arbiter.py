"""The arbiter: two masters write and read their own words through one memory."""

from __future__ import annotations

import random
from typing import Any

import pytest

from intloom.hw.soc.axi_arbiter import AxiArbiter
from intloom.hw.spec.params import preset
from tests.hw.soc.axi_memory import AxiMemory
from tests.hw.streams import run, sink, source


@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_every_master_gets_its_own_words(rate: float, rng: random.Random) -> None:
    arbiter = AxiArbiter(preset("nano"))
    memory = AxiMemory(arbiter.memory, 4, rng, rate)
    masters = (arbiter.first, arbiter.second)
    bursts = [[(256 * n + 16 * i, rng.randrange(1, 9)) for i in range(12)] for n in range(2)]
    data = [[rng.getrandbits(32) for _, beats in bursts[n] for _ in range(beats)] for n in range(2)]
    done: list[list[int]] = [[], []]
    got: list[list[Any]] = [[], []]

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
    layout = arbiter.first.r.payload.shape()
    for n in range(2):
        read = [layout.from_bits(bits) for bits in got[n]]
        assert [r.data for r in read] == data[n]
        assert {r.id for r in read} == {0}
    assert {(channel, number) for channel, number, _ in memory.order} == {(c, n) for c in ("ar", "aw") for n in (0, 1)}
    # Both masters wait at the beginning, so the first grants alternate.
    first = [number for channel, number, _ in memory.order if channel == "aw"][:4]
    assert rate < 1 or first in ([0, 1, 0, 1], [1, 0, 1, 0])
