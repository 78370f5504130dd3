"""Corrections for the input's zero point against sums of the weights, from the first possible read on."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from amaranth.hdl import Module, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.mac.array.accumulators import Accumulators
from intloom.hw.mac.array.mac_array import MacArray
from intloom.hw.mac.array.pixel_fetcher import PixelFetcher
from intloom.hw.mac.weights.zero_point_correction import (
    CORRECTION_SET_BITS,
    PRODUCT_STAGES,
    ZeroPointCorrection,
    multiply,
    multiply_wide,
)
from intloom.hw.spec.arith import WEIGHT_BITS
from intloom.hw.spec.params import MULTIPLIERS, HardwareParams
from tests.hw.mac.shapes import WEIGHT_SHAPES
from tests.hw.streams import made, run

SETS = 1 << CORRECTION_SET_BITS
BLOCKS = 12
_ZERO_POINTS = (-128, -127, -1, 0, 1, 127)
_WEIGHTS = (-255, -128, -1, 0, 1, 127, 255)

Tile = list[list[int]]


@dataclass
class Block:
    """An output block: its tiles, and what is to be subtracted."""

    zp_in: int
    tiles: list[Tile]
    corrections: list[int]
    last_tile: int = 0
    """The cycle in which the first word of the last tile is asked for."""
    done: int = 0
    """The cycle in which the last word is asked for."""


@dataclass(frozen=True)
class Word:
    """A column's weights, and what is said of their tile."""

    first: int
    last: int
    zp_in: int
    weights: list[int]


def _block(rng: random.Random, params: HardwareParams) -> Block:
    """A block with random weights, or, every second one, with all weights at one limit."""
    zp_in = rng.choice((*_ZERO_POINTS, rng.randint(-128, 127)))
    limit = rng.choice((*_WEIGHTS, *[None] * len(_WEIGHTS)))
    tiles = [
        [[rng.randint(-255, 255) if limit is None else limit for _ in range(params.rows)] for _ in range(params.cols)]
        for _ in range(rng.randint(1, 4))
    ]
    return Block(zp_in, tiles, ZeroPointCorrection.model(tiles, zp_in, params.acc_bits))


def _timeline(blocks: list[Block], rng: random.Random) -> list[Word | None]:
    """The words in order, with pauses; blocks get the cycles of their words."""
    cycles: list[Word | None] = []
    pause = rng.choice((0.0, 0.2))
    for block in blocks:
        for number, tile in enumerate(block.tiles):
            last = number == len(block.tiles) - 1
            block.last_tile = len(cycles)
            for weights in tile:
                while rng.random() < pause:
                    cycles.append(None)
                cycles.append(Word(int(number == 0), int(last), block.zp_in, weights))
            cycles += [None] * rng.choice((0, 0, 1, 5))
        block.done = max(k for k, word in enumerate(cycles) if word)
    return cycles


def _readable(blocks: list[Block], number: int, cycle: int, rows: int) -> bool:
    """Whether a block's set is complete, and not written again."""
    latency = ZeroPointCorrection.latency(rows)
    over = number + SETS < len(blocks) and cycle >= blocks[number + SETS].last_tile + latency - 1
    return blocks[number].done + latency <= cycle and not over


@pytest.mark.parametrize("name", WEIGHT_SHAPES)
def test_sums_of_weights_are_corrections_from_the_stated_latency_on(name: str, rng: random.Random) -> None:
    params = WEIGHT_SHAPES[name].replace(acc_bits=rng.choice((20, 32)), multiplier_bits=rng.choice(MULTIPLIERS))
    unit = made(ZeroPointCorrection, params)
    blocks = [_block(rng, params) for _ in range(BLOCKS)]
    cycles = _timeline(blocks, rng)
    first_reads = {block.done + unit.latency(params.rows): k for k, block in enumerate(blocks)}
    checked = 0

    async def bench(ctx: Any) -> None:
        nonlocal checked
        asked: list[tuple[int, int] | None] = []
        for cycle in range(len(cycles) + 40):
            word = cycles[cycle] if cycle < len(cycles) else None
            found = {"first": rng.randrange(2), "last": rng.randrange(2), "zp_in": rng.randint(-128, 127)}
            if word:
                found = {"first": word.first, "last": word.last, "zp_in": word.zp_in}
            ctx.set(unit.to_sum, {"valid": word is not None, **found})
            arrived = cycle - unit.WEIGHTS_STAGE
            loaded = cycles[arrived] if 0 <= arrived < len(cycles) else None
            for row in range(params.rows):
                ctx.set(unit.weights[row], loaded.weights[row] if loaded else rng.randint(-255, 255))
            complete = [k for k in range(BLOCKS) if _readable(blocks, k, cycle, params.rows)]
            read = first_reads.get(cycle, rng.choice(complete) if complete and rng.random() < 0.7 else None)
            group = rng.randrange(params.cols // params.lanes)
            asked.append(None if read is None else (read, group))
            ctx.set(unit.read, read is not None)
            ctx.set(unit.read_set, rng.randrange(SETS) if read is None else read % SETS)
            ctx.set(unit.group, group)
            if cycle >= unit.READ_LATENCY:
                expected = [0] * params.lanes
                if (due := asked[cycle - unit.READ_LATENCY]) is not None:
                    expected = blocks[due[0]].corrections[due[1] * params.lanes :][: params.lanes]
                    checked += 1
                assert [ctx.get(unit.corrections[lane]) for lane in range(params.lanes)] == expected
            await ctx.tick()

    run(unit, bench)
    assert checked > BLOCKS


class Multiplier(wiring.Component):
    """A form of the multiplier for sums of 32 weights."""

    def __init__(self, form: Callable[[Module, Value, Value], Value]) -> None:
        self._form = form
        super().__init__({"total": In(signed(WEIGHT_BITS + 5)), "zp_in": In(signed(8)), "product": Out(signed(22))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.product.eq(self._form(m, self.total, self.zp_in))
        return m


@pytest.mark.parametrize("form", [multiply, multiply_wide])
def test_the_product_is_that_of_a_multiplication(
    form: Callable[[Module, Value, Value], Value], rng: random.Random
) -> None:
    unit = Multiplier(form)
    powers = [sign * (1 << k) for k in range(13) for sign in (1, -1)]
    totals = [0, 32 * 255, -32 * 255, *powers, *(rng.randint(-32 * 255, 32 * 255) for _ in range(6))]
    operands = [(total, zp_in) for zp_in in range(-128, 128) for total in totals]

    async def bench(ctx: Any) -> None:
        for cycle in range(len(operands) + PRODUCT_STAGES):
            if cycle >= PRODUCT_STAGES:
                total, zp_in = operands[cycle - PRODUCT_STAGES]
                assert ctx.get(unit.product) == total * zp_in
            total, zp_in = operands[min(cycle, len(operands) - 1)]
            ctx.set(unit.total, total)
            ctx.set(unit.zp_in, zp_in)
            await ctx.tick()

    run(unit, bench)


@pytest.mark.parametrize("rows", [4, 8, 16, 32])
def test_corrections_are_complete_before_a_block_s_first_readout(rows: int) -> None:
    # A tile's first pixel issues no earlier than its last word is read.
    readout = PixelFetcher.LATENCY + MacArray.latency(rows) + Accumulators.WRITE_LATENCY
    assert ZeroPointCorrection.latency(rows) <= readout
