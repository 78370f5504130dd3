"""Tile loops, stepped with pauses, against a plain loop nest."""

from __future__ import annotations

import random
from typing import Any

from intloom.hw.mac.issue.tile_loops import Tap, TileLoops, last_tile_indices, taps
from tests.hw.streams import run


def test_loops_nest(rng: random.Random) -> None:
    loops = TileLoops()
    kernel = ("kernel_h", "kernel_w", "in_blocks")
    bounds = [{name: rng.randint(1, 4) for name in kernel} | {"two_planes": rng.randrange(2)} for _ in range(5)]
    steps = 0

    async def bench(ctx: Any) -> None:
        nonlocal steps
        for bound in bounds:
            ctx.set(loops.last_indices, last_tile_indices(bound))
            # After the last tile comes the first one again.
            for expected in [*TileLoops.model(bound)] * 2:
                ctx.set(loops.step, 0)
                while rng.random() < 0.3:
                    await ctx.tick()
                assert {name: ctx.get(getattr(loops, name)) for name in expected} == expected
                ctx.set(loops.step, 1)
                await ctx.tick()
                steps += 1

    run(loops, bench)
    assert steps == 2 * sum((1 + b["two_planes"]) * b["kernel_h"] * b["kernel_w"] * b["in_blocks"] for b in bounds)


def test_the_last_loop_is_the_fastest() -> None:
    first, second, *_, last = taps({"two_planes": 1, "kernel_h": 3, "kernel_w": 4, "in_blocks": 5})
    assert (first, second, last) == (Tap(0, 0, 0, 0), Tap(0, 0, 0, 1), Tap(1, 2, 3, 4))
