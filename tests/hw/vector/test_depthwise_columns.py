"""Depthwise columns: the sums of all windows."""

import random
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.vector_depthwise import TAPS, constant_words
from intloom.hw.vector.depthwise_columns import DepthwiseColumns
from tests.hw.streams import made, run
from tests.hw.vector.depthwise import NANO, PAIRED, SHAPES, store

Word = list[int]
Kernel = tuple[int, int]
"""Height and width."""
Draw = Callable[[random.Random, int], Word]


def _any(rng: random.Random, count: int) -> Word:
    return [rng.randint(-128, 127) for _ in range(count)]


def _ends(rng: random.Random, count: int) -> Word:
    return [rng.choice((-128, 127, 0, 1)) for _ in range(count)]


def _lowest(rng: random.Random, count: int) -> Word:
    return [-128] * count


def _highest(rng: random.Random, count: int) -> Word:
    return [127] * count


def _to_int(word: Word) -> int:
    return int.from_bytes(bytes(value & 0xFF for value in word), "little")


class _Bench:
    """Sends words and records the sums and when they come."""

    def __init__(self, params: HardwareParams, words: Draw, rng: random.Random) -> None:
        self.columns = made(DepthwiseColumns, params)
        self.rng = rng
        self._count = params.word_bytes
        self._words = words
        self._cycle = 0
        self.found: list[tuple[int, list[int]]] = []
        self.expected: list[tuple[int, list[int]]] = []

    async def load(self, ctx: Any, kernel: Kernel, weights: Draw) -> None:
        """Store the weights; biases and scales have any value."""
        self._kernel_h, self._kernel_w = kernel
        self._weights = [[weights(self.rng, self._count) for _ in range(kernel[1])] for _ in range(kernel[0])]
        ctx.set(self.columns.kernel_w, self._kernel_w)
        words = [bytes(value & 0xFF for value in tap) for row in self._weights for tap in row]
        words += [self.rng.randbytes(self._count) for _ in range(constant_words(*kernel) - len(words))]
        await store(ctx, self.columns.write, kernel, words, self.rng)

    async def walk(self, ctx: Any, stride: int, pause: float) -> None:
        """The columns under an output row of three pixels."""
        kernel_w = self._kernel_w
        count = 2 * stride + kernel_w
        draw = [[self._words(self.rng, self._count) for _ in range(self._kernel_h)] for _ in range(count)]
        for x, column in enumerate(draw):
            ends = x >= kernel_w - 1 and (x - kernel_w + 1) % stride == 0
            for y, word in enumerate(column):
                last = ends and y == self._kernel_h - 1
                await self._send(ctx, word, {"first": y == 0, "last": last}, pause)
            if ends:
                cells = product(range(self._kernel_h), range(kernel_w))
                window = {(ky, kx): draw[x - kernel_w + 1 + kx][ky] for ky, kx in cells}
                due = self._cycle - 1 + DepthwiseColumns.LATENCY
                self.expected.append((due, DepthwiseColumns.model(self._weights, window)))

    async def _send(self, ctx: Any, word: Word, tap: dict[str, bool], pause: float) -> None:
        columns, rng = self.columns, self.rng
        while rng.random() < pause:
            # What is there between words counts for nothing.
            ctx.set(columns.word, rng.getrandbits(8 * self._count))
            ctx.set(columns.tap, {"first": rng.randrange(2), "last": rng.randrange(2)})
            await self.tick(ctx)
        ctx.set(columns.word, _to_int(word))
        ctx.set(columns.tap, tap)
        ctx.set(columns.valid, 1)
        await self.tick(ctx)
        ctx.set(columns.valid, 0)

    async def tick(self, ctx: Any) -> None:
        """The next cycle."""
        await ctx.tick()
        self._cycle += 1
        if ctx.get(self.columns.sums_valid):
            self.found.append((self._cycle, [ctx.get(total) for total in self.columns.sums]))


def _check(
    params: HardwareParams, kernels: list[Kernel], draw: tuple[Draw, Draw], rng: random.Random, pause: float
) -> None:
    """Kernels one after the other: each finds the weights and sums that the one before has left."""
    weights, words = draw
    bench = _Bench(params, words, rng)

    async def process(ctx: Any) -> None:
        for kernel in kernels:
            await bench.load(ctx, kernel, weights)
            for stride in (1, 1, 2, 3, 4):
                await bench.walk(ctx, stride, pause)
            for _ in range(DepthwiseColumns.LATENCY):
                await bench.tick(ctx)

    run(bench.columns, process)
    assert bench.found == bench.expected


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("pause", [0.0, 0.3])
def test_sums_of_windows(shape: str, pause: float, rng: random.Random) -> None:
    kernels = [(rng.choice((1, 3, 5)), width) for width in (TAPS, rng.randint(1, TAPS))]
    _check(SHAPES[shape], kernels, (_any, _any), rng, pause)


@pytest.mark.parametrize("params", [NANO, PAIRED])
def test_kernels_of_every_size(params: HardwareParams, rng: random.Random) -> None:
    """Every height, and every width after the largest one."""
    kernels = [(height, rng.randint(1, TAPS)) for height in range(1, 16)]
    kernels += [(3, width) for narrow in range(1, TAPS + 1) for width in (TAPS, narrow)]
    _check(params, kernels, (_any, _any), rng, 0.1)


@pytest.mark.parametrize("params", [NANO, PAIRED])
@pytest.mark.parametrize("draw", [(_lowest, _lowest), (_lowest, _highest), (_highest, _lowest), (_ends, _ends)])
def test_the_largest_sums(draw: tuple[Draw, Draw], params: HardwareParams, rng: random.Random) -> None:
    _check(params, [(15, TAPS)], draw, rng, 0.0)
