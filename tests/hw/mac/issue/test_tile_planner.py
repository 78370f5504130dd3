"""Tile planner: each tile is ready in time and starts at the right position."""

import random
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any

import pytest

from intloom.hw.mac.issue.descriptors import STRIPS_BITS
from intloom.hw.mac.issue.loop_setup import TAP_BITS
from intloom.hw.mac.issue.tile_loops import Tap
from intloom.hw.mac.issue.tile_planner import TilePlanner, position, tiles
from intloom.hw.spec.isa import BY_KIND, COORDINATE_BITS, SCRATCH_BITS, Kind
from intloom.hw.spec.params import preset
from tests.hw.mac.plans import random_plan
from tests.hw.streams import made, run

NANO = preset("nano")
FIRST = Tap(0, 0, 0)
PREFIX = 6
"""Tiles to compare: more than there are if a count has lost a bit."""


async def _ready(ctx: Any, planner: TilePlanner) -> None:
    """From the cycle after a strobe to the one in which the tile must be ready."""
    for _ in range(planner.LATENCY - 1):
        assert not ctx.get(planner.ready)
        await ctx.tick()
    assert ctx.get(planner.ready)


async def _step(ctx: Any, planner: TilePlanner, tap: Tap, after: dict[str, int]) -> None:
    """End the current tile; at the end of a strip's first tile, capture the start of the next strip."""
    ctx.set(planner.step, 1)
    ctx.set(planner.capture, tap == FIRST)
    ctx.set(planner.captured, after)
    await ctx.tick()
    ctx.set(planner.step, 0)
    ctx.set(planner.capture, 0)
    # Only the position with `capture` counts.
    ctx.set(planner.captured, {name: ~value for name, value in after.items()})


@pytest.mark.parametrize("pause", [0.0, 0.5])
def test_tiles_are_planned_ahead(pause: float, rng: random.Random) -> None:
    planner = made(TilePlanner, NANO)
    single = {"kernel_h": 1, "kernel_w": 1, "in_blocks": 1}
    shortened = [(strips, shorter) for strips in range(2, 5) for shorter in range(strips)]
    plans = [random_plan(rng, NANO, **single, strips=s, length=6, shorter=k, out_w=6) for s, k in shortened]
    plans += [random_plan(rng, NANO) for _ in range(7)]
    large = {"in_blocks": 1, "out_blocks": 1}
    plans.append(random_plan(rng, NANO, kernel_h=15, kernel_w=1, dilation_h=15, **large))
    # The plan's only tile.
    plans.append(random_plan(rng, NANO, **single, out_blocks=1, strips=1, length=5, shorter=0))
    # Rows at many distances in rings of all sizes: the sum of two is next to the ring's end in some.
    plans += [random_plan(rng, NANO, 1 << bit, kernel_h=15, kernel_w=1, **large) for bit in range(SCRATCH_BITS)]
    # Without a ring, from the last row offset on.
    plans.append(random_plan(rng, NANO, 0, row_first=(1 << SCRATCH_BITS) - 1, kernel_h=2, kernel_w=1, **large))
    # Rows of any width: the first pixel has 2^n pixels after it.
    rows = {"kernel_h": 2, "kernel_w": 1, **large}
    plans += [random_plan(rng, NANO, **rows, out_w=1 << bit | 1) for bit in range(1, COORDINATE_BITS)]
    plans.append(random_plan(rng, NANO, kernel_h=1, kernel_w=15, column_tap=(1 << TAP_BITS) - 1, **large))
    continued = 0

    async def wait(ctx: Any) -> None:
        await _ready(ctx, planner)
        while rng.random() < pause:
            await ctx.tick()

    async def bench(ctx: Any) -> None:
        nonlocal continued
        for plan in plans:
            ctx.set(planner.start, 1)
            await ctx.tick()
            ctx.set(planner.start, 0)
            ctx.set(planner.plan, plan)
            _, *following = TilePlanner.model(plan)
            *before, _ = tiles(plan)
            for (_, strip, tap), (start, tile) in zip(before, following, strict=True):
                await wait(ctx)
                assert not ctx.get(planner.finished)
                found = ctx.get(planner.tile)
                assert {name: found[name] for name in tile} == tile
                # A tile that continues starts where the current one ends, which is not known yet.
                assert tile["continues"] or {name: found.start[name] for name in start} == start
                continued += tile["continues"]
                await _step(ctx, planner, tap, position(plan, FIRST, strip.stop))
            await wait(ctx)
            assert ctx.get(planner.finished)

    run(planner, bench)
    assert continued > 0


def _large(rng: random.Random) -> Iterator[dict[str, int]]:
    """Plans of many tiles, one count with each of its bits, 2^n + 2: it ends after two if bit n is lost."""
    single = {"kernel_h": 1, "kernel_w": 1, "in_blocks": 1, "length": 5, "out_w": 6}
    for name in ("in_blocks", "out_blocks"):
        for bit in range(2, BY_KIND[Kind.CONV].field(name).width):
            yield random_plan(rng, NANO, **{**single, "strips": 1, "shorter": 0, name: 1 << bit | 2})
    for bit in range(2, STRIPS_BITS):
        # With a shorter strip, the second one has the length of the first only if bit n counts there too.
        for shorter in (0, 1):
            plan = random_plan(rng, NANO, **single, strips=1 << bit | 2, shorter=shorter, out_blocks=2)
            yield plan
        # The flag ends the first block after a strip. Its strips would be too many to reach the second block, for which
        # they are counted again.
        yield plan | {"one_strip": 1, "in_block_step": 0}


def test_every_count_has_its_whole_width(rng: random.Random) -> None:
    planner = made(TilePlanner, NANO)

    async def bench(ctx: Any, plan: dict[str, int]) -> None:
        ctx.set(planner.start, 1)
        await ctx.tick()
        ctx.set(planner.start, 0)
        ctx.set(planner.plan, plan)
        # After a first block that ends early, the second block's tiles follow, which are the same.
        first = int(plan["one_strip"] == (plan["strips"] == 1))
        following = islice(TilePlanner.model(plan), first, PREFIX)
        for (_, strip, tap), (_, tile) in zip(tiles(plan), following, strict=False):
            await _ready(ctx, planner)
            found = ctx.get(planner.tile)
            assert not ctx.get(planner.finished)
            assert {name: found[name] for name in tile} == tile
            await _step(ctx, planner, tap, position(plan, FIRST, strip.stop))
        await _ready(ctx, planner)

    # Each after a reset: a plan that is not walked to its end leaves a tap.
    for plan in _large(rng):
        run(planner, partial(bench, plan=plan))
