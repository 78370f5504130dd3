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
from tests.hw.vector.slices import as_int8

Word = list[int]
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

    def __init__(
        self, params: HardwareParams, kernel: tuple[int, int], weights: Draw, words: Draw, rng: random.Random
    ) -> None:
        self.columns = made(DepthwiseColumns, params)
        self.rng = rng
        self._count = params.word_bytes
        self._kernel = self._kernel_h, self._kernel_w = kernel
        self._words = words
        self._weights = [[weights(rng, self._count) for _ in range(kernel[1])] for _ in range(kernel[0])]
        self._cycle = 0
        self.found: list[tuple[int, list[int]]] = []
        self.expected: list[tuple[int, list[int]]] = []

    async def load(self, ctx: Any) -> None:
        """Store the weights; biases and scales have any value."""
        ctx.set(self.columns.kernel_w, self._kernel_w)
        words = [bytes(value & 0xFF for value in tap) for row in self._weights for tap in row]
        words += [self.rng.randbytes(self._count) for _ in range(constant_words(*self._kernel) - len(words))]
        await store(ctx, self.columns.write, self._kernel, words, self.rng)

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
    params: HardwareParams, kernel: tuple[int, int], draw: tuple[Draw, Draw], rng: random.Random, pause: float
) -> None:
    bench = _Bench(params, kernel, *draw, rng)

    async def process(ctx: Any) -> None:
        await bench.load(ctx)
        for stride in (1, 1, 2, 3, 4):
            await bench.walk(ctx, stride, pause)
        for _ in range(DepthwiseColumns.LATENCY):
            await bench.tick(ctx)

    run(bench.columns, process)
    assert bench.found == bench.expected


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("pause", [0.0, 0.3])
def test_sums_of_windows(shape: str, pause: float, rng: random.Random) -> None:
    _check(SHAPES[shape], (rng.choice((1, 3, 5)), rng.randint(1, TAPS)), (_any, _any), rng, pause)


@pytest.mark.parametrize("kernel_h", range(1, 16))
def test_kernels_of_every_height(kernel_h: int, rng: random.Random) -> None:
    _check(NANO, (kernel_h, rng.randint(1, TAPS)), (_any, _any), rng, 0.1)


@pytest.mark.parametrize("kernel_w", range(1, TAPS + 1))
@pytest.mark.parametrize("params", [NANO, PAIRED])
def test_kernels_of_every_width(params: HardwareParams, kernel_w: int, rng: random.Random) -> None:
    _check(params, (3, kernel_w), (_any, _any), rng, 0.1)


@pytest.mark.parametrize("params", [NANO, PAIRED])
@pytest.mark.parametrize("draw", [(_lowest, _lowest), (_lowest, _highest), (_highest, _lowest), (_ends, _ends)])
def test_the_largest_sums(draw: tuple[Draw, Draw], params: HardwareParams, rng: random.Random) -> None:
    _check(params, (15, TAPS), draw, rng, 0.0)


def test_weights_can_be_replaced(rng: random.Random) -> None:
    """A second block's sums have nothing of the first one's, whose kernel is wider."""
    columns = made(DepthwiseColumns, NANO)
    sums: list[int] = []

    async def bench(ctx: Any) -> None:
        for weight, width in ((3, TAPS), (5, 3)):
            words = [bytes([weight]) * 4] * width + [bytes(4)] * (constant_words(1, 0))
            ctx.set(columns.kernel_w, width)
            await store(ctx, columns.write, (1, width), words, rng)
            ctx.set(columns.valid, 1)
            ctx.set(columns.word, 0x01010101)
            for last in (*[0] * (width - 1), 1):
                ctx.set(columns.tap, {"first": 1, "last": last})
                await ctx.tick()
            ctx.set(columns.valid, 0)
            await ctx.tick().until(columns.sums_valid)
            sums.append(as_int8(ctx.get(columns.sums[0])))

    run(columns, bench)
    assert sums == [15, 15]
