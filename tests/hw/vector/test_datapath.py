"""Datapath: its stages in order."""

from __future__ import annotations

import random
from typing import Any

import pytest

from intloom.hw.spec.arith import Affine
from intloom.hw.vector.datapath import Datapath
from intloom.hw.vector.slicer import Slicer
from tests.hw.streams import run
from tests.hw.vector.slices import WIDTHS, as_int8, idle_cycles, record, to_bytes, with_lanes


@pytest.mark.parametrize("lanes", WIDTHS)
def test_the_datapath_chains_its_stages(lanes: int, rng: random.Random) -> None:
    datapath = Datapath(with_lanes(lanes))
    affine = Affine(m1=rng.randint(-90, 90), m2=rng.randint(-90, 90), c=rng.randint(-9000, 9000), shift=6, even=True)
    content, amount = rng.randbytes(256), rng.randrange(8)
    pairs = [(rng.randbytes(8), rng.randbytes(8)) for _ in range(20)]
    found: list[int] = []

    async def bench(ctx: Any) -> None:
        for name in ("m1", "m2", "c", "shift", "even"):
            ctx.set(datapath.operation[name], getattr(affine, name))
        ctx.set(datapath.operation.rotate, amount)
        ctx.set(datapath.operation.table, 1)
        ctx.set(datapath.table_en, 1)
        for index, byte in enumerate(content):
            ctx.set(datapath.table_index, index)
            ctx.set(datapath.table_byte, byte)
            await ctx.tick()
        ctx.set(datapath.table_en, 0)
        for a, b in pairs:
            for parts in zip(Slicer.model(a, lanes), Slicer.model(b, lanes), strict=True):
                await idle_cycles(ctx, rng, datapath.valid)
                for lane in range(lanes):
                    ctx.set(datapath.a[lane], as_int8(parts[0][lane]))
                    ctx.set(datapath.b[lane], as_int8(parts[1][lane]))
                await ctx.tick()
        ctx.set(datapath.valid, 0)
        await ctx.tick().repeat(Datapath.LATENCY)

    run(datapath, bench, background=[record(datapath.result_valid, datapath.result, found)])
    assert [to_bytes(n, 8) for n in found] == [Datapath.model(a, b, affine, content, amount) for a, b in pairs]
