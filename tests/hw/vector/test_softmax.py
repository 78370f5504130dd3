"""Softmax: the results of pixels whose bytes pass three times."""

import random
from typing import Any

import pytest

from intloom.hw.spec.params import HardwareParams, preset
from intloom.hw.spec.softmax import EXPONENTIAL_BYTES, LARGEST_TOTAL, PASSES, QUEUE_GROUPS
from intloom.hw.vector.softmax import Softmax
from tests.hw.streams import made, run
from tests.hw.vector.slices import as_int8, idle_cycles, record, to_bytes, to_int, with_lanes

SHAPES = {
    "bytes": with_lanes(1),
    "pairs_in_four_slices": with_lanes(2),
    "pairs_in_one_slice": with_lanes(8),
    "base": preset("base"),
    "large": preset("large"),
}
"""Accelerators with groups of 1, 2, 4, 8 and 16 bytes."""
ENDS = ("bytes", "large")
"""The smallest and the largest group."""


async def _load(ctx: Any, softmax: Softmax, exponentials: list[int], rng: random.Random) -> None:
    for part in range(EXPONENTIAL_BYTES):
        ctx.set(softmax.write_part, part)
        for index, number in enumerate(exponentials):
            await idle_cycles(ctx, rng, softmax.write_en)
            ctx.set(softmax.write_index, index)
            ctx.set(softmax.write_byte, number >> 8 * part & 0xFF)
            await ctx.tick()
        ctx.set(softmax.write_en, 0)


async def _pixel(ctx: Any, softmax: Softmax, values: bytes, rng: random.Random, paused: bool) -> None:
    word, group = 1 << len(softmax.position), len(softmax.group) // 8
    blocks = len(values) // word
    for number in range(PASSES):
        for at in range(0, len(values), group):
            divides = number == PASSES - 1
            while divides and not ctx.get(softmax.ready):
                await ctx.tick()
            if paused:
                await idle_cycles(ctx, rng, softmax.valid)
            ctx.set(softmax.taken, divides)
            ctx.set(softmax.valid, 1)
            ctx.set(softmax.group, to_int(values[at : at + group]))
            ctx.set(softmax.position, at % word)
            ctx.set(softmax.tap.first, at < word)
            ctx.set(softmax.tap.last, at // word == blocks - 1)
            ctx.set(softmax.number, number)
            await ctx.tick()
            ctx.set(softmax.valid, 0)
            ctx.set(softmax.taken, 0)


def _table(rng: random.Random, kind: str) -> list[int]:
    if kind == "falling":
        return [int((1 << 24) * 0.97 ** (255 - k)) - (k == 255) for k in range(256)]
    return [0 if kind == "zero" else (1 << 24) - 1 if kind == "full" else rng.getrandbits(24) for _ in range(256)]


def _check(
    params: HardwareParams, exponentials: list[int], operations: list[tuple[int, int]], rng: random.Random
) -> None:
    """Operations of three pixels, with their field `less` and the words of a pixel."""
    softmax, word, lanes = made(Softmax, params), params.word_bytes, params.vector_lanes
    found: list[int] = []
    expected: list[int] = []

    async def bench(ctx: Any) -> None:
        await _load(ctx, softmax, exponentials, rng)
        for less, size in operations:
            # The unit changes fields between operations, when nothing is in flight.
            counted, zero = rng.randint(1, word), rng.choice((-128, rng.randint(-128, 127)))
            ctx.set(softmax.last_bytes, counted)
            ctx.set(softmax.less, less)
            ctx.set(softmax.zp_out, zero)
            paused = rng.random() < 0.5
            for _ in range(3):
                values = rng.randbytes(word * size)
                await _pixel(ctx, softmax, values, rng, paused)
                signed = [as_int8(byte) for byte in values]
                expected.extend(Softmax.model(signed, exponentials, less, zero, len(values) - word + counted))
            await ctx.tick().repeat(Softmax.latency(params) + 2 * QUEUE_GROUPS)

    run(softmax, bench, background=[record(softmax.result_valid, softmax.result, found)])
    results = [as_int8(byte) for number in found for byte in to_bytes(number, lanes)]
    assert results == expected


@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        pytest.param(kind, shape, marks=[pytest.mark.nightly] * (kind != "falling" and shape not in ENDS))
        for kind in ("falling", "random", "zero", "full")
        for shape in SHAPES
    ],
)
def test_results_of_pixels(kind: str, shape: str, rng: random.Random) -> None:
    params: HardwareParams = SHAPES[shape].replace(vector_softmax=True)
    # 320 of the largest exponentials exceed the sum's bits.
    sizes = (1, 1, 2, 3, 320 // params.word_bytes)
    operations = [(rng.randrange(4), rng.choice(sizes)) for _ in range(48 // params.word_bytes)]
    _check(params, _table(rng, kind), operations, rng)


@pytest.mark.parametrize("bits", [4, 9, 14, 24])
def test_small_sums_show_low_bits(bits: int, rng: random.Random) -> None:
    """Short pixels of exponentials of a few bits: every bit of a dividend counts, in every lane."""
    params = SHAPES["large"].replace(vector_softmax=True)
    operations = [(number % 4, 1) for number in range(8)]
    _check(params, [rng.getrandbits(bits) for _ in range(256)], operations, rng)


def _results(
    params: HardwareParams, exponentials: list[int], less: int, pixels: list[list[int]], rng: random.Random
) -> list[int]:
    """The results of pixels of whole words, which are those of the model."""
    softmax, word = made(Softmax, params), params.word_bytes
    found: list[int] = []

    async def bench(ctx: Any) -> None:
        await _load(ctx, softmax, exponentials, rng)
        ctx.set(softmax.last_bytes, word)
        ctx.set(softmax.less, less)
        ctx.set(softmax.zp_out, -128)
        for pixel in pixels:
            await _pixel(ctx, softmax, bytes(pixel), rng, False)
        await ctx.tick().repeat(Softmax.latency(params) + 2 * QUEUE_GROUPS)

    run(softmax, bench, background=[record(softmax.result_valid, softmax.result, found)])
    results = [as_int8(byte) for number in found for byte in to_bytes(number, params.vector_lanes)]
    assert results == [n for pixel in pixels for n in Softmax.model(pixel, exponentials, less, -128, len(pixel))]
    return results


@pytest.mark.slow
def test_every_bit_of_an_exponential_is_scaled_in_every_lane(rng: random.Random) -> None:
    """Pixels with one exponential other than 0, a power of two: its result is 256 - `less`."""
    less = 3
    params = SHAPES["large"].replace(vector_softmax=True)
    word = params.word_bytes
    exponentials = [0] * 256
    # The largest value of a pixel has the last entry, a value that is smaller by d the one d before it.
    for bit in range(8 * EXPONENTIAL_BYTES):
        exponentials[254 - bit] = 1 << bit
    pixels = [(lane, bit) for lane in range(word) for bit in range(8 * EXPONENTIAL_BYTES)]
    values = [
        [127 if k == (lane + 1) % word else 126 - bit if k == lane else 0 for k in range(word)] for lane, bit in pixels
    ]
    results = _results(params, exponentials, less, values, rng)
    assert sum(n == 256 - less - 128 for n in results) == len(pixels)


def test_a_sum_that_saturates_has_all_of_its_bits(rng: random.Random) -> None:
    """Exponentials that are just too small for the result 1, which they would have with a smaller sum."""
    params = SHAPES["large"].replace(vector_softmax=True)
    # With this `less`, a multiple of an exponential comes nearest to the limit between the results 0 and 1.
    less, largest = 2, (1 << 8 * EXPONENTIAL_BYTES) - 1
    small = ((LARGEST_TOTAL + 1) // 2 - 1) // (256 - less)
    pixel = [127] * 254 + [126] * 3 + [125]
    # The sum is larger than the largest one by 1: all bits come from its saturation.
    exponentials = [0] * 253 + [LARGEST_TOTAL + 1 - 254 * largest - 3 * small, small, largest]
    pixel += [0] * (-len(pixel) % params.word_bytes)
    results = _results(params, exponentials, less, [pixel], rng)
    assert [n + 128 for n in results] == [value == 127 for value in pixel]


@pytest.mark.parametrize(("channels", "waits"), [(416, False), (928, False), (1024, True)])
def test_only_long_pixels_wait_for_the_dividers(channels: int, waits: bool, rng: random.Random) -> None:
    params = preset("base")
    softmax = made(Softmax, params)
    unready: list[int] = []

    async def bench(ctx: Any) -> None:
        ctx.set(softmax.last_bytes, params.word_bytes)
        for _ in range(3):
            await _pixel(ctx, softmax, rng.randbytes(channels), rng, False)

    run(softmax, bench, background=[record(~softmax.ready, softmax.taken, unready)])
    assert bool(unready) == waits
