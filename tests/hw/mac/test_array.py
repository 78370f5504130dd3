"""MAC array and accumulators against plain sums, cycle by cycle."""

from __future__ import annotations

import random
from typing import Any

import pytest

from hw.mac.accumulator import Accumulators
from hw.mac.array import MacArray
from hw.mac.sums import ColumnSums
from hw.spec.arith import wrap
from hw.spec.params import HardwareParams, preset
from tests.hw.streams import run

_NANO = preset("nano")
_ODD = _NANO.replace(rows=8, cols=4, lanes=2, axi_data_bits=64, strip=16, acc_bits=20)
_TURNS = _NANO.replace(cols=8, lanes=1, strip=16)


def _word(values: list[int]) -> int:
    return int.from_bytes(bytes(v & 255 for v in values), "little")


@pytest.mark.parametrize("params", [_NANO, _ODD, _NANO.replace(rows=32, cols=4, axi_data_bits=256, weight_kib=64)])
def test_array_multiplies_while_the_next_tile_loads(params: HardwareParams) -> None:
    rng = random.Random(params.rows)
    extremes = (-128, 127, -1, 0, 1)

    def numbers() -> list[int]:
        return [rng.choice((*extremes, rng.randint(-128, 127))) for _ in range(params.rows)]

    array = MacArray(params)
    latency = array.latency(params.rows)
    expected: dict[int, list[int]] = {}

    async def bench(ctx: Any) -> None:
        cycle = 0
        tile: list[list[int]] = []
        for _ in range(6):
            coming = [numbers() for _ in range(params.cols)]
            # The first column is written in the cycle of the swap already.
            for column in range(params.cols):
                swap = column == 0 and bool(tile)
                if tile:
                    pixel = numbers()
                    ctx.set(array.pixel, _word(pixel))
                    expected[cycle + latency] = MacArray.model(pixel, tile)
                ctx.set(array.valid, bool(tile))
                ctx.set(array.swap, swap)
                ctx.set(array.load, 1 << column)
                ctx.set(array.load_word, _word(coming[column]))
                if cycle in expected:
                    assert [ctx.get(array.dots[c]) for c in range(params.cols)] == expected[cycle]
                await ctx.tick()
                cycle += 1
            tile = coming

    run(array, bench)
    assert len(expected) == 5 * params.cols


def test_model_is_a_dot_product() -> None:
    assert MacArray.model([1, -2, 3], [[4, 5, 6], [-128, 127, 0]]) == [12, -382]


@pytest.mark.parametrize("params", [_NANO, _ODD, _TURNS])
def test_accumulators_add_strips_and_drain_behind_them(params: HardwareParams) -> None:
    rng = random.Random(params.cols)
    length, tiles = Accumulators.REVISIT, 5
    dots = [
        [[rng.choice((-300000, 250000, rng.randint(-9, 9))) for _ in range(params.cols)] for _ in range(length)]
        for _ in range(tiles)
    ]
    limit = 1 << (15 + (params.rows - 1).bit_length())
    dots = [[[max(-limit, min(limit - 1, d)) for d in pixel] for pixel in tile] for tile in dots]
    accumulators = Accumulators(params)
    groups = params.cols // params.lanes
    seen: dict[tuple[int, int], list[int]] = {}
    through = tiles if ColumnSums.takes_turns(params) else tiles - 1
    start_of_drain = through * length + Accumulators.AHEAD + Accumulators.VISIBLE

    async def bench(ctx: Any) -> None:
        for cycle in range(start_of_drain + length * groups + Accumulators.DRAIN_LATENCY):
            late = cycle - start_of_drain - Accumulators.DRAIN_LATENCY
            if late >= 0:
                seen[divmod(late, groups)] = [ctx.get(accumulators.drain_sums[lane]) for lane in range(params.lanes)]
            tile, pixel = divmod(cycle, length)
            ctx.set(accumulators.valid, tile < tiles)
            ctx.set(accumulators.first, tile == 0)
            ctx.set(accumulators.address, params.strip + pixel)
            tile, pixel = divmod(cycle - Accumulators.AHEAD, length)
            for column in range(params.cols):
                ctx.set(accumulators.dots[column], dots[tile][pixel][column] if 0 <= tile < tiles else 77)
            item = cycle - start_of_drain
            ctx.set(accumulators.drain_groups, 1 << item % groups if 0 <= item < length * groups else 0)
            ctx.set(accumulators.drain_address, params.strip + max(0, item) // groups % length)
            await ctx.tick()

    run(accumulators, bench)
    sums = [
        [wrap(sum(dots[t][p][c] for t in range(tiles)), params.acc_bits) for c in range(params.cols)]
        for p in range(length)
    ]
    assert seen == {
        (p, g): sums[p][g * params.lanes : (g + 1) * params.lanes] for p in range(length) for g in range(groups)
    }
