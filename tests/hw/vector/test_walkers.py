"""Raster walker, window walker and the raster setup that configures them."""

from __future__ import annotations

import random
from typing import Any

import pytest
from amaranth.lib import data

from intloom.hw.spec.isa import SCRATCH_BITS, Kind
from intloom.hw.spec.params import preset
from intloom.hw.vector.operation import operation_of
from intloom.hw.vector.raster_setup import RasterSetup
from intloom.hw.vector.raster_walker import PIXEL_LAYOUT, RASTER_LAYOUT, RasterWalker
from intloom.hw.vector.window_walker import FETCH_LAYOUT, WINDOW_LAYOUT, WindowWalker
from tests.hw.streams import cycles_through, run, sink, source
from tests.hw.vector.cases import InstructionGenerator

RATES = [1.0, 0.5]
PARAMS = preset("nano").replace(scratch_kib=4)


def _fields(layout: data.StructLayout, bits: int) -> dict[str, Any]:
    constant = layout.from_bits(bits)
    return {name: constant[name] for name in layout.members}


def _raster(rng: random.Random) -> dict[str, int]:
    sizes = {"blocks": rng.randint(1, 3), "lines": rng.randint(1, 4), "pixels": rng.randint(1, 5)}
    steps = {name: rng.getrandbits(SCRATCH_BITS) for name in ("base", "plane", "line", "step")}
    repeats = {"line_repeat": rng.randint(1, 3), "pixel_repeat": rng.randint(1, 3)}
    addresses = {"line_at": rng.randint(-9, 9), "pixel_at": rng.randint(-9, 9), "prefill": rng.randint(0, 4)}
    return {
        **sizes,
        **steps,
        **repeats,
        **addresses,
        "line_stride": rng.randint(1, 4),
        "pixel_stride": rng.randint(1, 4),
    }


@pytest.mark.parametrize("rate", RATES)
def test_rasters_follow_their_model(rate: float, rng: random.Random) -> None:
    walker = RasterWalker()
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


@pytest.mark.parametrize("rate", RATES)
def test_windows_follow_their_model(rate: float, rng: random.Random) -> None:
    for _ in range(6):
        slide = rng.randrange(2)
        config = {
            "lines": 1 if slide else rng.randint(1, 4),
            "pixels": 1 if slide else rng.randint(1, 4),
            "line": rng.getrandbits(SCRATCH_BITS),
            "slide": slide,
            "bounded": rng.randrange(2),
            "line_limit": rng.randint(1, 5),
            "pixel_limit": rng.randint(1, 5),
        }
        pixels = [
            {
                "addr": rng.getrandbits(SCRATCH_BITS),
                "line_at": rng.randint(-4, 6),
                "pixel_at": rng.randint(-4, 6),
                "first": rng.randrange(2),
                "window_full": rng.randrange(2) if slide else 1,
            }
            for _ in range(20)
        ]
        expected = [word for pixel in pixels for word in WindowWalker.model(config, pixel)]
        walker = WindowWalker()
        taken: list[int] = []

        async def configure(ctx: Any, walker: WindowWalker = walker, config: dict[str, int] = config) -> None:
            ctx.set(walker.config, config)

        give = source(walker.i, pixels, rng, rate)
        take = sink(walker.o, taken, len(expected), rng, rate)
        run(walker, configure, give, take)
        words = [FETCH_LAYOUT.from_bits(bits) for bits in taken]
        assert [(w.addr, bool(w.inside), bool(w.tap.first), bool(w.tap.last)) for w in words] == expected


def test_a_window_opens_after_the_latency() -> None:
    assert cycles_through(WindowWalker(), {"addr": 5, "window_full": 1}) == WindowWalker.LATENCY


def _plan(operation: dict[str, int]) -> dict[str, Any]:
    """The configurations that raster setup derives from an operation."""
    planner = RasterSetup()
    plan: dict[str, Any] = {}

    async def bench(ctx: Any) -> None:
        ctx.set(planner.operation, operation)
        await ctx.tick().repeat(RasterSetup.LATENCY)
        for name in ("a", "b", "out"):
            plan[name] = _fields(RASTER_LAYOUT, ctx.get(getattr(planner, name)).as_bits())
        plan["window"] = _fields(WINDOW_LAYOUT, ctx.get(planner.window).as_bits())
        plan["slide"], plan["link"] = ctx.get(planner.slide), ctx.get(planner.link)

    run(planner, bench)
    return plan


def _windows(plan: dict[str, Any]) -> list[list[tuple[int, bool]]]:
    """The words of each window, in order, as the walkers and the pool's chain combine them."""
    windows: list[list[tuple[int, bool]]] = []
    words: list[tuple[int, bool]] = []
    for pixel in RasterWalker.model(plan["a"]):
        for addr, inside, first, last in WindowWalker.model(plan["window"], pixel):
            words = [*([] if first else words), (addr, inside)]
            if last:
                windows.append(words[-plan["link"] - 1 :] if plan["slide"] else words)
    return windows


@pytest.mark.parametrize("kind", [Kind.VCOPY, Kind.VADD, Kind.VMUL, Kind.VMAX, Kind.VAVG])
def test_raster_setup_matches_the_instruction(kind: Kind, rng: random.Random) -> None:
    maker = InstructionGenerator(rng, PARAMS)
    slid = 0
    for _ in range(25):
        operation = operation_of(maker.instruction(kind), PARAMS)
        plan = _plan(operation)
        slid += plan["slide"]
        wanted = list(RasterSetup.model(operation))
        addresses = [pixel["addr"] for pixel in RasterWalker.model(plan["out"])]
        found = dict(zip(addresses, _windows(plan), strict=True))
        assert found == {out: window for out, window, _ in wanted}, operation
        assert [pixel["addr"] for pixel in RasterWalker.model(plan["b"])] == [b for *_, b in wanted]
    assert (slid > 2) == (kind is Kind.VMAX)
