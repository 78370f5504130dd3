"""Raster setup: the walkers visit what the instruction states."""

from __future__ import annotations

import random
from typing import Any

import pytest
from amaranth.lib import data

from intloom.hw.spec.isa import Kind
from intloom.hw.spec.params import preset
from intloom.hw.spec.softmax import PASSES
from intloom.hw.vector.operation import operation_of
from intloom.hw.vector.raster_setup import RasterSetup
from intloom.hw.vector.raster_walker import RASTER_LAYOUT, RasterWalker
from intloom.hw.vector.window_walker import WINDOW_LAYOUT, WindowWalker
from tests.hw.streams import run
from tests.hw.vector.cases import InstructionGenerator

PARAMS = preset("nano").replace(scratch_kib=4)


def _fields(layout: data.StructLayout, bits: int) -> dict[str, Any]:
    constant = layout.from_bits(bits)
    return {name: constant[name] for name in layout.members}


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


def test_a_softmax_visits_each_pixel_three_times(rng: random.Random) -> None:
    maker = InstructionGenerator(rng, PARAMS)
    for _ in range(25):
        operation = operation_of(maker.instruction(Kind.VSOFTMAX), PARAMS)
        plan = _plan(operation)
        wanted = list(RasterSetup.model(operation))
        assert [pixel["addr"] for pixel in RasterWalker.model(plan["out"])] == [out for out, *_ in wanted]
        windows = [window for _, window, _ in wanted[:: operation["blocks"]]]
        assert _windows(plan) == [window for window in windows for _ in range(PASSES)], operation
