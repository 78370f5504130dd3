"""The output walker and the preparer against plain loops and divisions."""

from __future__ import annotations

import random
from typing import Any

import pytest

from hw.mac.prepare import Preparer
from hw.mac.walker import OutputWalker
from hw.spec.params import preset
from tests.hw.streams import run

_NANO = preset("nano")
_SHAPES = {
    "square": _NANO,
    "tall": _NANO.replace(rows=8, cols=4, lanes=2, axi_data_bits=64, strip=16),
    "wide": _NANO.replace(rows=4, cols=8, lanes=1, weight_kib=64),
}


@pytest.mark.parametrize("name", _SHAPES)
@pytest.mark.parametrize("seed", range(4))
def test_walk_visits_every_group_in_order(name: str, seed: int) -> None:
    p = _SHAPES[name]
    rng = random.Random(f"{name} {seed}")
    walk = {
        "out_h": rng.randint(1, 3), "out_w": rng.randint(1, 3), "blocks": rng.randint(1, 3),
        "base": rng.randrange(1 << 20), "plane": rng.randrange(1 << 20),
        "row": rng.randrange(1 << 16), "x": rng.randint(1, 15),
        "byte": rng.randrange(0, p.rows, p.lanes),
    }  # fmt: skip
    groups = p.cols // p.lanes
    expected = []
    for block in range(walk["blocks"]):
        for oy in range(walk["out_h"]):
            for ox in range(walk["out_w"]):
                for group in range(groups):
                    place = walk["byte"] + block * p.cols + group * p.lanes
                    word = walk["base"] + place // p.rows * walk["plane"] + oy * walk["row"] + ox * walk["x"]
                    block_end = (oy, ox, group) == (walk["out_h"] - 1, walk["out_w"] - 1, groups - 1)
                    expected.append((word % (1 << 20), place % p.rows, group, int(block_end)))
    walker = OutputWalker(p)
    seen = []

    async def bench(ctx: Any) -> None:
        ctx.set(walker.walk, walk)
        ctx.set(walker.start, 1)
        await ctx.tick()
        ctx.set(walker.start, 0)
        for number in range(len(expected)):
            while rng.random() < 0.3:
                ctx.set(walker.step, 0)
                await ctx.tick()
            seen.append(tuple(ctx.get(s) for s in (walker.address, walker.byte, walker.group, walker.block_end)))
            assert ctx.get(walker.last) == (number == len(expected) - 1)
            ctx.set(walker.step, 1)
            await ctx.tick()

    run(walker, bench)
    assert seen == expected


@pytest.mark.parametrize("seed", range(6))
def test_preparer_divides_and_stays_in_the_ring(seed: int) -> None:
    rng = random.Random(seed)
    p = _SHAPES["tall"]
    preparer = Preparer(p)
    jobs = []
    for _ in range(6):
        pixels, ring = rng.choice((1, 16, 17, rng.randrange(1, 1 << 20))), rng.choice((0, rng.randrange(1, 1 << 20), 5))
        jobs.append({
            "pixels": pixels, "strips": -(-pixels // p.strip), "in_ring": ring, "in_row_off": rng.randrange(1 << 20),
            "in_row": rng.randrange(1 << 16), "stride_h": rng.randint(1, 4), "dilation_h": rng.randint(1, 15),
            "dilation_w": rng.randint(1, 15), "packed": rng.randrange(2),
        })  # fmt: skip

    async def bench(ctx: Any) -> None:
        for job in jobs:
            for name, value in job.items():
                ctx.set(preparer.jobs.payload[name], value)
            ctx.set(preparer.jobs.valid, 1)
            await ctx.tick().until(preparer.jobs.ready)
            ctx.set(preparer.jobs.valid, 0)
            cycles = 0
            while not ctx.get(preparer.plans.valid):
                await ctx.tick()
                cycles += 1
            assert cycles <= 40
            modulus = job["in_ring"] or 1 << 20
            plan = preparer.plans.payload
            row = job["in_row"]
            assert (ctx.get(plan.length), ctx.get(plan.longer)) == divmod(job["pixels"], job["strips"])
            assert ctx.get(plan.row_first) == job["in_row_off"] % modulus
            assert ctx.get(plan.row_stride) == row * job["stride_h"] % modulus
            assert ctx.get(plan.row_tap) == row * job["dilation_h"] % modulus
            assert ctx.get(plan.column_tap) == job["dilation_w"] * (p.pixels_per_word if job["packed"] else 1)
            ctx.set(preparer.plans.ready, 1)
            await ctx.tick()
            ctx.set(preparer.plans.ready, 0)

    run(preparer, bench)
