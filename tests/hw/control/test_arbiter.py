"""The shared read channel: each master gets its own data in its own order, within the limit of bursts."""

from __future__ import annotations

import random
from typing import Any

import pytest

from hw.control.arbiter import ReadArbiter
from hw.spec.params import preset
from tests.hw.streams import run, source


@pytest.mark.parametrize("outstanding", [1, 2, 8])
def test_data_finds_its_master(outstanding: int, seed: int) -> None:
    rng = random.Random(seed)
    params = preset("nano").replace(axi_outstanding=outstanding)
    arbiter = ReadArbiter(params)
    bursts = {
        name: [{"addr": base + 100 * i, "beats_less_one": rng.randrange(6), "last": 0} for i in range(30)]
        for name, base in (("fetch", 0), ("load", 1 << 20))
    }
    expected = {n: [b["addr"] + k for b in bs for k in range(b["beats_less_one"] + 1)] for n, bs in bursts.items()}
    got: dict[str, list[int]] = {"fetch": [], "load": []}
    most = 0

    async def memory(ctx: Any) -> None:
        nonlocal most
        beats: list[tuple[int, int]] = []
        open_bursts = 0
        while True:
            ctx.set(arbiter.ar.ready, rng.random() < 0.6)
            if not ctx.get(arbiter.r.valid) and beats and rng.random() < 0.6:
                ctx.set(arbiter.r.payload, {"id": 0, "data": beats[0][0], "resp": 0, "last": beats[0][1]})
                ctx.set(arbiter.r.valid, 1)
            *_, asked, ar, taken = await ctx.tick().sample(
                arbiter.ar.valid & arbiter.ar.ready, arbiter.ar.payload, arbiter.r.valid & arbiter.r.ready
            )
            if taken:
                open_bursts -= beats.pop(0)[1]
                ctx.set(arbiter.r.valid, 0)
            if asked:
                assert (ar.size, ar.burst, ar.id) == (2, 1, 0)
                beats += [(ar.addr // params.word_bytes + k, int(k == ar.len)) for k in range(ar.len + 1)]
                open_bursts += 1
                most = max(most, open_bursts)

    def taker(name: str) -> Any:
        port = getattr(arbiter, f"{name}_r")

        async def process(ctx: Any) -> None:
            while len(got[name]) < len(expected[name]):
                ctx.set(port.ready, rng.random() < 0.6)
                *_, moved, answer = await ctx.tick().sample(port.valid & port.ready, port.payload)
                if moved:
                    got[name].append(answer.data)

        return process

    sources = [source(getattr(arbiter, name), items, rng, 0.7) for name, items in bursts.items()]
    takers = [taker(name) for name in got]
    run(arbiter, *sources, *takers, background=[memory])
    assert got == expected
    assert most <= outstanding
