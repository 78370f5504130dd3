"""Tile loops, stepped with pauses, against a plain loop nest."""

import random
from typing import Any

from intloom.hw.mac.issue.tile_loops import Tap, TileLoops, last_tile_indices, taps
from intloom.hw.spec.isa import BY_KIND, Kind
from tests.hw.streams import made, run


def test_loops_nest(rng: random.Random) -> None:
    loops = made(TileLoops)
    kernel = ("kernel_h", "kernel_w", "in_blocks")
    bounds = [{name: rng.randint(1, 4) for name in kernel} for _ in range(5)]
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
    assert steps == 2 * sum(b["kernel_h"] * b["kernel_w"] * b["in_blocks"] for b in bounds)


def test_every_bound_has_its_whole_width() -> None:
    """Bounds two above a single bit: a loop that loses this bit, in its end or while it counts, has other passes."""
    loops = made(TileLoops)

    async def bench(ctx: Any) -> None:
        fields = [BY_KIND[Kind.CONV].field(name) for name in ("kernel_h", "kernel_w", "in_blocks")]
        for name, bit in [(field.name, bit) for field in fields for bit in range(field.width)]:
            bounds = {"kernel_h": 1, "kernel_w": 1, "in_blocks": 2}
            bounds[name] = (1 << bit) + 2
            ctx.set(loops.last_indices, last_tile_indices(bounds))
            expected = [*TileLoops.model(bounds)]
            # The whole nest: the counters are back at the first tile for the next bound.
            for outputs in expected:
                assert {output: ctx.get(getattr(loops, output)) for output in outputs} == outputs, bounds
                ctx.set(loops.step, 1)
                await ctx.tick()
                ctx.set(loops.step, 0)

    run(loops, bench)


def test_the_last_loop_is_the_fastest() -> None:
    first, second, *_, last = taps({"kernel_h": 3, "kernel_w": 4, "in_blocks": 5})
    assert (first, second, last) == (Tap(0, 0, 0), Tap(0, 0, 1), Tap(2, 3, 4))
