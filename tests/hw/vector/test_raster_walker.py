"""Raster walker against its model."""

import random
from itertools import islice
from typing import Any

import pytest
from amaranth.lib import data

from intloom.hw.spec.isa import BY_KIND, SCRATCH_BITS, Kind
from intloom.hw.vector.raster_walker import PIXEL_LAYOUT, PREFILL_BITS, RASTER_LAYOUT, RasterWalker
from tests.hw.streams import made, run, sink
from tests.hw.vector.rasters import COUNTS, large_rasters

RATES = [1.0, 0.5]
_STRIDE = BY_KIND[Kind.VMAX].field("stride_h")


def _fields(layout: data.StructLayout, bits: int) -> dict[str, Any]:
    constant = layout.from_bits(bits)
    return {name: constant[name] for name in layout.members}


def _raster(rng: random.Random) -> dict[str, int]:
    # Half of the lines are longer than what fills a window.
    pixels = rng.choice((rng.randint(1, 5), (1 << PREFILL_BITS) + 2))
    sizes = {"blocks": rng.randint(1, 3), "lines": rng.randint(1, 7), "pixels": pixels}
    steps = {name: rng.getrandbits(SCRATCH_BITS) for name in ("base", "plane", "line", "step")}
    repeats = {"line_repeat": rng.randint(1, 3), "pixel_repeat": rng.randint(1, 3)}
    return {
        **sizes,
        **steps,
        **repeats,
        "line_at": rng.randint(-9, 9),
        "pixel_at": rng.randint(-9, 9),
        "prefill": rng.getrandbits(PREFILL_BITS),
        **{f"{loop}_stride": rng.randint(1, _STRIDE.maximum) for loop in ("line", "pixel")},
    }


@pytest.mark.parametrize("rate", RATES)
def test_rasters_follow_their_model(rate: float, rng: random.Random) -> None:
    walker = made(RasterWalker)
    taken: list[int] = []
    expected = []
    configs = [_raster(rng) for _ in range(12)]

    async def start(ctx: Any) -> None:
        for config in configs:
            ctx.set(walker.config, config)
            ctx.set(walker.start, 1)
            for _ in range(RasterWalker.LATENCY):
                assert not ctx.get(walker.o.valid)
                await ctx.tick()
                ctx.set(walker.start, 0)
            assert ctx.get(walker.o.valid)
            await ctx.tick().until(~walker.active)

    for config in configs:
        expected += list(RasterWalker.model(config))
    run(walker, start, sink(walker.o, taken, len(expected), rng, rate))
    assert [_fields(PIXEL_LAYOUT, bits) for bits in taken] == expected


LARGE = [
    pytest.param(config, id=f"{name}-{n}")
    for name in RASTER_LAYOUT.members
    # With 2 more, a count that loses bit n in its first step ends after two.
    for n, config in enumerate(
        c | {name: c[name] + more} for c in large_rasters(name) for more in ((0, 2) if name in COUNTS else (0,))
    )
] + [
    pytest.param(
        large_rasters(f"{loop}_repeat")[1]
        | {"lines": 1, "pixels": 1, f"{loop}s": 24, f"{loop}_repeat": BY_KIND[Kind.VCOPY].field("up_h").maximum},
        id=f"repeated-{loop}",
    )
    for loop in ("line", "pixel")
]


@pytest.mark.parametrize("config", LARGE)
def test_every_member_of_a_raster_has_its_whole_width(config: dict[str, int]) -> None:
    """The first words of a raster with one large member."""
    walker = made(RasterWalker)

    async def bench(ctx: Any) -> None:
        ctx.set(walker.o.ready, 1)
        ctx.set(walker.config, config)
        ctx.set(walker.start, 1)
        await ctx.tick()
        ctx.set(walker.start, 0)
        for word in islice(RasterWalker.model(config), 24):
            assert ctx.get(walker.o.valid)
            payload = ctx.get(walker.o.payload)
            assert {member: payload[member] for member in word} == word
            await ctx.tick()

    run(walker, bench)
