"""Accumulators: strips are accumulated and read out behind the array, cycle by cycle."""

import random
from typing import Any

import pytest

from intloom.hw.mac.array.accumulators import Accumulators
from intloom.hw.mac.array.mac_array import dot_bits
from intloom.hw.spec.params import HardwareParams, preset
from tests.hw.streams import made, run

NANO = preset("nano")
ODD = NANO.replace(rows=8, cols=4, lanes=2, axi_data_bits=64, strip=16, acc_bits=20)
TURNS = NANO.replace(cols=8, lanes=1, strip=16)


@pytest.mark.parametrize("params", [NANO, ODD, TURNS])
def test_strips_are_accumulated_and_read_out_concurrently(params: HardwareParams, rng: random.Random) -> None:
    # The second tile is a strip's first, too: what the first one left must not count.
    length, tiles = Accumulators.REVISIT, 6
    dots = [
        [[rng.choice((-300000, 250000, rng.randint(-9, 9))) for _ in range(params.cols)] for _ in range(length)]
        for _ in range(tiles)
    ]
    limit = 1 << (dot_bits(params.rows) - 1)
    dots = [[[max(-limit, min(limit - 1, d)) for d in pixel] for pixel in tile] for tile in dots]
    accumulators = made(Accumulators, params)
    # In both banks, with every bit of an address.
    slots = [slot ^ inverted for slot in rng.sample(range(params.strip), 2) for inverted in (0, 2 * params.strip - 1)]
    assert len(slots) == length
    groups = params.cols // params.lanes
    seen: dict[tuple[int, int], list[int]] = {}
    through = tiles if params.single_ported_accumulators else tiles - 1
    start_of_drain = through * length + Accumulators.ADDRESS_LEAD + Accumulators.WRITE_LATENCY

    async def bench(ctx: Any) -> None:
        for cycle in range(start_of_drain + length * groups + Accumulators.READOUT_LATENCY):
            late = cycle - start_of_drain - Accumulators.READOUT_LATENCY
            if late >= 0:
                seen[divmod(late, groups)] = [ctx.get(accumulators.readout_sums[lane]) for lane in range(params.lanes)]
            tile, pixel = divmod(cycle, length)
            ctx.set(accumulators.valid, tile < tiles)
            ctx.set(accumulators.first, tile <= 1)
            ctx.set(accumulators.address, slots[pixel])
            tile, pixel = divmod(cycle - Accumulators.ADDRESS_LEAD, length)
            for column in range(params.cols):
                ctx.set(accumulators.dots[column], dots[tile][pixel][column] if 0 <= tile < tiles else 77)
            item = cycle - start_of_drain
            ctx.set(accumulators.readout_groups, 1 << item % groups if 0 <= item < length * groups else 0)
            ctx.set(accumulators.readout_address, slots[max(0, item) // groups % length])
            await ctx.tick()

    run(accumulators, bench)
    column_sums = [
        [Accumulators.model((tile[p][c] for tile in dots[1:]), params.acc_bits) for c in range(params.cols)]
        for p in range(length)
    ]
    assert seen == {
        (p, g): column_sums[p][g * params.lanes : (g + 1) * params.lanes] for p in range(length) for g in range(groups)
    }


@pytest.mark.parametrize("params", [NANO, ODD, TURNS])
@pytest.mark.parametrize("bank", [0, 1])
def test_sums_continue_those_of_the_other_bank(params: HardwareParams, bank: int, rng: random.Random) -> None:
    length, column = Accumulators.REVISIT, params.cols - 1
    dots = [[rng.randint(-999, 999) for _ in range(length)] for _ in range(3)]
    accumulators = made(Accumulators, params)
    banks, sums = (bank, 1 - bank, 1 - bank), []

    async def bench(ctx: Any) -> None:
        for cycle in range(len(dots) * length + Accumulators.ADDRESS_LEAD):
            tile, pixel = divmod(cycle, length)
            ctx.set(accumulators.valid, tile < len(dots))
            ctx.set(accumulators.first, tile == 0)
            ctx.set(accumulators.continued, tile == 1)
            ctx.set(accumulators.address, banks[min(tile, 2)] * params.strip + pixel)
            tile, pixel = divmod(cycle - Accumulators.ADDRESS_LEAD, length)
            ctx.set(accumulators.dots[column], dots[max(0, tile)][pixel])
            await ctx.tick()
        await ctx.tick().repeat(Accumulators.WRITE_LATENCY)
        for at in banks[:2]:
            for pixel in range(length):
                ctx.set(accumulators.readout_address, at * params.strip + pixel)
                ctx.set(accumulators.readout_groups, 1 << params.cols // params.lanes - 1)
                await ctx.tick()
                # Without another request the sums stay.
                ctx.set(accumulators.readout_groups, 0)
                await ctx.tick().repeat(Accumulators.READOUT_LATENCY + rng.randrange(3))
                sums.append(ctx.get(accumulators.readout_sums[params.lanes - 1]))

    run(accumulators, bench)
    assert sums == [*dots[0], *(sum(column) for column in zip(*dots, strict=True))]


def test_sums_use_all_bits_and_wrap() -> None:
    """The extreme dot products of the largest array, over as many tiles as it takes to wrap 32 bits."""
    params = NANO.replace(rows=32, cols=4, lanes=4, axi_data_bits=256, weight_kib=64)
    limit, length = 1 << (dot_bits(params.rows) - 1), Accumulators.REVISIT
    tiles = (1 << params.acc_bits) // limit // 2 + 3
    values = [-limit, limit - 1, -limit // 2 - 1, 1]
    accumulators = made(Accumulators, params)
    pixels = [[values[(pixel + column) % 4] for column in range(params.cols)] for pixel in range(length)]
    sums: list[list[int]] = []

    async def bench(ctx: Any) -> None:
        for cycle in range(tiles * length + Accumulators.ADDRESS_LEAD):
            ctx.set(accumulators.valid, cycle < tiles * length)
            ctx.set(accumulators.first, cycle < length)
            ctx.set(accumulators.address, cycle % length)
            for column, dot in enumerate(pixels[(cycle - Accumulators.ADDRESS_LEAD) % length]):
                ctx.set(accumulators.dots[column], dot)
            await ctx.tick()
        await ctx.tick().repeat(Accumulators.WRITE_LATENCY)
        ctx.set(accumulators.readout_groups, 1)
        for pixel in range(length):
            ctx.set(accumulators.readout_address, pixel)
            await ctx.tick().repeat(Accumulators.READOUT_LATENCY)
            sums.append([ctx.get(lane) for lane in accumulators.readout_sums])

    run(accumulators, bench)
    assert sums == [[Accumulators.model([dot] * tiles, params.acc_bits) for dot in pixel] for pixel in pixels]
    assert limit * tiles > 1 << params.acc_bits - 1


def test_model_wraps() -> None:
    assert Accumulators.model([(1 << 19) - 1, 5, -2], 20) == 2 - (1 << 19)
