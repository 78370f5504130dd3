"""Weight fetcher: tiles are read for every strip while the shadow is free, with one constants request per block."""

import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest
from amaranth.hdl import Shape

from intloom.hw.mac.issue.descriptors import STRIPS_BITS, WEIGHT_DESCRIPTOR
from intloom.hw.mac.issue.tile_loops import taps
from intloom.hw.mac.weights.fetcher import CONSTANTS_REQUEST, WeightFetcher
from intloom.hw.ports import WEIGHT_LATENCY
from intloom.hw.spec import timing
from intloom.hw.spec.isa import WEIGHT_ADDRESS_BITS
from intloom.hw.spec.params import HardwareParams
from tests.hw.mac.shapes import RATES, WEIGHT_SHAPES, any_descriptor
from tests.hw.streams import made, run, sink, source


def _descriptor(rng: random.Random, zero_points: int | None = None) -> dict[str, int]:
    counts = {name: rng.randint(1, 3) for name in ("kernel_h", "kernel_w", "in_blocks", "out_blocks", "strips")}
    fixed = {} if zero_points is None else {"weight_zero_points": zero_points}
    return any_descriptor(WEIGHT_DESCRIPTOR, rng) | counts | fixed


@dataclass(frozen=True)
class Word:
    """A word that the fetcher reads: of a column, or of the zero points of a block."""

    column: int | None = None
    zero_points: int = 0
    shifted: bool = False
    """Its instruction has zero points."""
    to_sum: tuple[int, int, int] | None = None
    """Whether its tile is the block's first one, and the last one; zp_in. None: it is not summed."""


def _words(descriptors: list[dict[str, int]], params: HardwareParams) -> Iterator[Word]:
    for descriptor in descriptors:
        shifted = bool(descriptor["weight_zero_points"])
        last = len([*taps(descriptor)]) - 1
        for _ in range(descriptor["out_blocks"]):
            yield from (Word(zero_points=1 << k) for k in range(params.zero_point_words * shifted))
            for strip, tile in product(range(descriptor["strips"]), range(last + 1)):
                summed = descriptor["subtract_zp_in"] and strip == 0
                to_sum = (int(tile == 0), int(tile == last), descriptor["zp_in"]) if summed else None
                yield from (Word(column, shifted=shifted, to_sum=to_sum) for column in range(params.cols))


class Array:
    """Takes tiles as the sequencer does, and checks the arrival of their words against the issue of pixels."""

    def __init__(
        self, fetcher: WeightFetcher, params: HardwareParams, words: Iterator[Word], rng: random.Random, rate: float
    ) -> None:
        self.fetcher, self.params, self.words, self.rng, self.rate = fetcher, params, words, rng, rate
        self.shifted, self.changed = True, 0
        self.reads: list[int] = []
        self.taken: list[int] = []
        self.became_ready: list[int] = []
        self.loads: list[int] = []

    async def follow(self, ctx: Any, tiles: int) -> None:
        """Run until all tiles have been taken and their last words have arrived."""
        fetcher, cycle = self.fetcher, 0
        # The last one arrives in this cycle, the one before it in the next.
        arriving: deque[Word | None] = deque([None] * WEIGHT_LATENCY, WEIGHT_LATENCY + 1)
        word = next(self.words, None)
        while len(self.taken) < tiles or any(arriving):
            allowed = self.rng.random() < self.rate
            ctx.set(fetcher.read_allowed, allowed)
            valid = ctx.get(fetcher.read_valid)
            last = word is not None and word.column == self.params.cols - 1
            assert allowed or not valid or last
            assert ctx.get(fetcher.last_word) == bool(valid and last)
            to_sum = ctx.get(fetcher.to_sum)
            found = (to_sum.first, to_sum.last, to_sum.zp_in) if to_sum.valid else None
            assert found == (word.to_sum if word and valid else None)
            arriving.appendleft(word if valid else None)
            self._arrive(ctx, cycle, arriving[-1], arriving[-2])
            if valid:
                self.reads.append(ctx.get(fetcher.read_address))
                word = next(self.words, None)
            ready = ctx.get(fetcher.ready)
            if ready and len(self.became_ready) == len(self.taken):
                self.became_ready.append(cycle)
            takes = ready and self.rng.random() < self.rate
            ctx.set(fetcher.taken, takes)
            if takes:
                self.taken.append(cycle)
            await ctx.tick()
            cycle += 1

    def _arrive(self, ctx: Any, cycle: int, word: Word | None, following: Word | None) -> None:
        column = following.column if following else None
        assert ctx.get(self.fetcher.load_next) == (0 if column is None else 1 << column)
        stored, cleared = ctx.get(self.fetcher.store_zero_points), ctx.get(self.fetcher.clear_zero_points)
        assert stored == (word.zero_points if word else 0)
        if stored or cleared:
            self.shifted, self.changed = bool(stored), cycle
        if word and word.column is not None:
            assert self.shifted == word.shifted
            assert cycle > self.changed + 1, "zero points hold from the second cycle on"
            tile = len(self.loads) // self.params.cols
            # A word is in the shadow in the cycle after its load; the swap comes SWAP_LEAD cycles after the taking.
            earliest = self.taken[tile - 1] + self.fetcher.SWAP_LEAD if tile else 0
            assert cycle >= earliest, f"tile {tile} overwrites a shadow that has not been swapped"
            self.loads.append(cycle)

    def check(self) -> None:
        """Every tile was complete at its swap, had its pixels issued at once."""
        for tile, ready in enumerate(self.became_ready):
            assert self.loads[(tile + 1) * self.params.cols - 1] < ready + self.fetcher.SWAP_LEAD


@pytest.mark.parametrize("name", WEIGHT_SHAPES)
@pytest.mark.parametrize("rate", RATES)
def test_tiles_are_fetched_for_every_strip(name: str, rate: float, rng: random.Random) -> None:
    params = WEIGHT_SHAPES[name]
    _check(params, [_descriptor(rng) for _ in range(3 if params.cols < 16 else 1)], rng, rate)


@pytest.mark.parametrize("name", WEIGHT_SHAPES)
def test_each_word_of_zero_points_waits_until_it_may_be_read(name: str, rng: random.Random) -> None:
    """With so many blocks that each word has to wait in some of them."""
    ones = dict.fromkeys(("kernel_h", "kernel_w", "in_blocks", "strips"), 1)
    _check(WEIGHT_SHAPES[name], [_descriptor(rng, zero_points=1) | ones | {"out_blocks": 8}], rng, min(RATES))


def _check(params: HardwareParams, descriptors: list[dict[str, int]], rng: random.Random, rate: float) -> None:
    """Reads and requests of these instructions, and when each tile is ready and taken."""
    fetcher = made(WeightFetcher, params)
    array = Array(fetcher, params, _words(descriptors, params), rng, rate)
    requests: list[int] = []
    expected = [
        CONSTANTS_REQUEST.const(r).as_value().value
        for descriptor in descriptors
        for r in WeightFetcher.requests(descriptor, params)
    ]
    tiles = sum(
        len([*taps(descriptor)]) * descriptor["strips"] * descriptor["out_blocks"] for descriptor in descriptors
    )

    async def follow(ctx: Any) -> None:
        await array.follow(ctx, tiles)

    feed = source(fetcher.descriptors, descriptors, rng, rate)
    run(fetcher, feed, sink(fetcher.constants, requests, len(expected), rng, rate), follow)
    assert array.reads == [address for descriptor in descriptors for address in WeightFetcher.model(descriptor, params)]
    assert requests == expected
    array.check()


@pytest.mark.parametrize("name", WEIGHT_SHAPES)
@pytest.mark.parametrize("zero_points", [0, 1])
def test_a_tile_is_ready_as_soon_as_its_words_can_be_read(name: str, zero_points: int, rng: random.Random) -> None:
    params = WEIGHT_SHAPES[name]
    fetcher = made(WeightFetcher, params)

    async def rises(ctx: Any, port: Any, cycles: int) -> None:
        for _ in range(cycles):
            assert not ctx.get(port)
            await ctx.tick()
        assert ctx.get(port)

    async def bench(ctx: Any) -> None:
        ctx.set(fetcher.read_allowed, 1)
        ctx.set(fetcher.constants.ready, 1)
        ctx.set(fetcher.descriptors.payload, _descriptor(rng, zero_points))
        ctx.set(fetcher.descriptors.valid, 1)
        assert ctx.get(fetcher.descriptors.ready)
        await rises(ctx, fetcher.constants.valid, WeightFetcher.REQUEST_LATENCY)
        await rises(ctx, fetcher.read_valid, WeightFetcher.REQUEST_LATENCY)
        for _ in range(zero_points * params.zero_point_words):
            assert ctx.get(fetcher.read_valid)
            await ctx.tick()
        if zero_points:
            await rises(ctx, fetcher.read_valid, timing.ZERO_POINTS)
        await rises(ctx, fetcher.ready, params.cols - 1)

    run(fetcher, bench)


@pytest.mark.parametrize("bit", range(2, Shape.cast(WEIGHT_DESCRIPTOR.members["out_blocks"]).width))
def test_all_bits_of_the_number_of_blocks_count(bit: int, rng: random.Random) -> None:
    """2^n + 1 blocks; without bit n there would be only one."""
    params = next(iter(WEIGHT_SHAPES.values()))
    ones = dict.fromkeys(("kernel_h", "kernel_w", "in_blocks", "strips"), 1)
    # Addresses rise through their highest bit.
    near = {"first_tile": (1 << WEIGHT_ADDRESS_BITS - 1) - 2}
    descriptor = _descriptor(rng, zero_points=0) | ones | near | {"out_blocks": 1 << bit | 1}
    _check_tiles(descriptor, [block * (params.cols + params.channel_words) for block in range(3)], rng)


@pytest.mark.parametrize("name", ["kernel_h", "kernel_w", "in_blocks"])
def test_all_bits_of_the_number_of_tiles_count(name: str, rng: random.Random) -> None:
    """2^n + 1 tiles; without bit n the second one would be the first one of the next strip."""
    ones = dict.fromkeys(("kernel_h", "kernel_w", "in_blocks"), 1)
    cols = next(iter(WEIGHT_SHAPES.values())).cols
    for bit in range(1, Shape.cast(WEIGHT_DESCRIPTOR.members[name]).width):
        descriptor = _descriptor(rng, zero_points=0) | ones | {"out_blocks": 2, "strips": 2, name: 1 << bit | 1}
        _check_tiles(descriptor, [tile * cols for tile in range(3)], rng)


@pytest.mark.parametrize("bit", [2, 15, STRIPS_BITS - 1])
def test_all_bits_of_the_number_of_strips_count(bit: int, rng: random.Random) -> None:
    """The third strip has the tile of the first one, and not that of the next block."""
    ones = dict.fromkeys(("kernel_h", "kernel_w", "in_blocks"), 1)
    descriptor = _descriptor(rng, zero_points=0) | ones | {"out_blocks": 2, "strips": 1 << bit | 1}
    _check_tiles(descriptor, [0] * 3, rng)


def _check_tiles(descriptor: dict[str, int], offsets: list[int], rng: random.Random) -> None:
    """The first tiles that are read, by their distance from the first one."""
    params = next(iter(WEIGHT_SHAPES.values()))
    fetcher = made(WeightFetcher, params)
    reads: list[int] = []

    async def follow(ctx: Any) -> None:
        ctx.set(fetcher.read_allowed, 1)
        while len(reads) < len(offsets) * params.cols:
            if ctx.get(fetcher.read_valid):
                reads.append(ctx.get(fetcher.read_address))
            ctx.set(fetcher.taken, ctx.get(fetcher.ready))
            await ctx.tick()

    give = source(fetcher.descriptors, [descriptor], rng)
    run(fetcher, follow, background=[give, sink(fetcher.constants, [], 9, rng)])
    words = [descriptor["first_tile"] + offset + column for offset in offsets for column in range(params.cols)]
    assert reads == [word % (1 << WEIGHT_ADDRESS_BITS) for word in words]
