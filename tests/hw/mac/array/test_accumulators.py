"""Accumulators: strips are accumulated and read out behind the array, cycle by cycle."""

from __future__ import annotations

import random
from typing import Any

import pytest

from intloom.hw.mac.array.accumulator_column import AccumulatorColumn
from intloom.hw.mac.array.accumulators import Accumulators
from intloom.hw.mac.array.mac_array import dot_bits
from intloom.hw.spec.params import HardwareParams, preset
from tests.hw.streams import run

NANO = preset("nano")
ODD = NANO.replace(rows=8, cols=4, lanes=2, axi_data_bits=64, strip=16, acc_bits=20)
TURNS = NANO.replace(cols=8, lanes=1, strip=16)


@pytest.mark.parametrize("params", [NANO, ODD, TURNS])
def test_strips_are_accumulated_and_read_out_concurrently(params: HardwareParams) -> None:
    rng = random.Random(params.cols)
    length, tiles = Accumulators.REVISIT, 5
    dots = [
        [[rng.choice((-300000, 250000, rng.randint(-9, 9))) for _ in range(params.cols)] for _ in range(length)]
        for _ in range(tiles)
    ]
    limit = 1 << (dot_bits(params.rows) - 1)
    dots = [[[max(-limit, min(limit - 1, d)) for d in pixel] for pixel in tile] for tile in dots]
    accumulators = Accumulators(params)
    groups = params.cols // params.lanes
    seen: dict[tuple[int, int], list[int]] = {}
    through = tiles if AccumulatorColumn.single_ported(params) else tiles - 1
    start_of_drain = through * length + Accumulators.ADDRESS_LEAD + Accumulators.WRITE_LATENCY

    async def bench(ctx: Any) -> None:
        for cycle in range(start_of_drain + length * groups + Accumulators.READOUT_LATENCY):
            late = cycle - start_of_drain - Accumulators.READOUT_LATENCY
            if late >= 0:
                seen[divmod(late, groups)] = [ctx.get(accumulators.readout_sums[lane]) for lane in range(params.lanes)]
            tile, pixel = divmod(cycle, length)
            ctx.set(accumulators.valid, tile < tiles)
            ctx.set(accumulators.first, tile == 0)
            ctx.set(accumulators.address, params.strip + pixel)
            tile, pixel = divmod(cycle - Accumulators.ADDRESS_LEAD, length)
            for column in range(params.cols):
                ctx.set(accumulators.dots[column], dots[tile][pixel][column] if 0 <= tile < tiles else 77)
            item = cycle - start_of_drain
            ctx.set(accumulators.readout_groups, 1 << item % groups if 0 <= item < length * groups else 0)
            ctx.set(accumulators.readout_address, params.strip + max(0, item) // groups % length)
            await ctx.tick()

    run(accumulators, bench)
    column_sums = [
        [Accumulators.model((tile[p][c] for tile in dots), params.acc_bits) for c in range(params.cols)]
        for p in range(length)
    ]
    assert seen == {
        (p, g): column_sums[p][g * params.lanes : (g + 1) * params.lanes] for p in range(length) for g in range(groups)
    }


def test_model_wraps() -> None:
    assert Accumulators.model([(1 << 19) - 1, 5, -2], 20) == 2 - (1 << 19)
