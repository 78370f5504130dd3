"""MAC array against plain dot products, cycle by cycle."""

import random
from typing import Any

import pytest

from intloom.hw.mac.array.mac_array import MacArray
from intloom.hw.spec.params import HardwareParams, preset
from tests.hw.idle import check_idle
from tests.hw.streams import made, run

TILES = 12
"""So many that each bit of each weight has both values."""
_NANO = preset("nano")
_PAIRED = _NANO.replace(multiplier_bits=25)
_ODD = _NANO.replace(rows=8, cols=4, lanes=2, axi_data_bits=64, strip=16, acc_bits=20)


def _word(values: list[int]) -> int:
    return int.from_bytes(bytes(v & 255 for v in values), "little")


@pytest.mark.parametrize(
    "params",
    [
        _NANO, _ODD, _NANO.replace(rows=32, cols=4, axi_data_bits=256, weight_kib=64),
        _PAIRED, _PAIRED.replace(rows=16, cols=4, lut_products=0, axi_data_bits=128, weight_kib=64),
    ],
)  # fmt: skip
def test_array_multiplies_while_the_next_tile_loads(params: HardwareParams, rng: random.Random) -> None:
    def numbers(low: int, high: int) -> list[int]:
        near = (low, low + 1, high, high - 1, -2, -1, 0, 1, rng.randint(low, high), rng.randint(low, high))
        return [rng.choice(near) for _ in range(params.rows)]

    array = made(MacArray, params)
    latency = array.latency(params.rows)
    expected: dict[int, list[int]] = {}

    async def bench(ctx: Any) -> None:
        cycle = 0
        tile: list[list[int]] = []
        loads: dict[int, tuple[int, list[int]]] = {}
        for number in range(TILES + 1):
            coming = [numbers(-255, 255) for _ in range(params.cols)]
            # A tile is used for at least as many cycles as the next one is loaded. Now and then both take longer.
            cycles = params.cols + rng.randint(1, 2 * params.cols) * (number % 2)
            # The first column is written in the cycle after the swap or later, the last one in that of the next swap.
            at = sorted(rng.sample(range(cycle + 1, cycle + cycles + 1), params.cols))
            loads |= {when: (1 << c, coming[c]) for c, when in enumerate(at)}
            for offset in range(cycles):
                pixel, valid = numbers(-128, 127), bool(tile) and rng.random() < 0.9
                if valid:
                    expected[cycle + latency] = MacArray.model(pixel, tile)
                ctx.set(array.pixel, _word(pixel))
                ctx.set(array.valid, valid)
                ctx.set(array.swap, offset == 0 and bool(tile))
                load, weights = loads.get(cycle, (0, numbers(-255, 255)))
                ctx.set(array.load, load)
                ctx.set(array.weights, weights)
                if cycle in expected:
                    assert [ctx.get(array.dots[c]) for c in range(params.cols)] == expected[cycle]
                await ctx.tick()
                cycle += 1
            tile = coming

    run(array, bench)
    assert len(expected) > TILES * params.cols // 2


def test_model_is_a_dot_product() -> None:
    assert MacArray.model([1, -2, 3], [[4, 5, 6], [-128, 127, 0]]) == [12, -382]


@pytest.mark.parametrize("params", [_NANO, _PAIRED])
def test_registers_keep_their_values_without_work(params: HardwareParams, rng: random.Random) -> None:
    check_idle(MacArray(params), rng, "valid", "load", "swap")
