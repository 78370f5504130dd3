"""Softmax: the results of pixels whose bytes pass three times."""

from __future__ import annotations

import random
from typing import Any

import pytest

from intloom.hw.spec.softmax import EXPONENTIAL_BYTES, PASSES
from intloom.hw.vector.softmax import Softmax
from tests.hw.streams import run
from tests.hw.vector.slices import WIDTHS, as_int8, idle_cycles, record, to_bytes, with_lanes

WORD = 8


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
    blocks = len(values) // WORD
    for number in range(PASSES):
        for at, byte in enumerate(values):
            if paused:
                await idle_cycles(ctx, rng, softmax.valid)
            ctx.set(softmax.valid, 1)
            ctx.set(softmax.byte, byte)
            ctx.set(softmax.position, at % WORD)
            ctx.set(softmax.tap.first, at < WORD)
            ctx.set(softmax.tap.last, at // WORD == blocks - 1)
            ctx.set(softmax.number, number)
            await ctx.tick()
            ctx.set(softmax.valid, 0)


def _table(rng: random.Random, kind: str) -> list[int]:
    if kind == "falling":
        return [int((1 << 24) * 0.97 ** (255 - k)) - (k == 255) for k in range(256)]
    return [0 if kind == "zero" else (1 << 24) - 1 if kind == "full" else rng.getrandbits(24) for _ in range(256)]


@pytest.mark.parametrize("lanes", WIDTHS)
@pytest.mark.parametrize("kind", ["falling", "random", "zero", "full"])
def test_results_of_pixels(lanes: int, kind: str, rng: random.Random) -> None:
    softmax = Softmax(with_lanes(lanes).replace(vector_softmax=True))
    exponentials = _table(rng, kind)
    found: list[int] = []
    expected: list[int] = []

    async def bench(ctx: Any) -> None:
        await _load(ctx, softmax, exponentials, rng)
        for _ in range(8):
            # The unit changes fields between operations, when nothing is in flight.
            counted, less, zero = rng.randint(1, WORD), rng.randrange(4), rng.choice((-128, rng.randint(-128, 127)))
            ctx.set(softmax.last_bytes, counted)
            ctx.set(softmax.less, less)
            ctx.set(softmax.zp_out, zero)
            paused = rng.random() < 0.5
            for _ in range(2):
                # 40 words of the largest exponentials exceed the sum's bits.
                values = rng.randbytes(WORD * rng.choice((1, 1, 2, 3, 40)))
                await _pixel(ctx, softmax, values, rng, paused)
                signed = [as_int8(byte) for byte in values]
                expected.extend(Softmax.model(signed, exponentials, less, zero, len(values) - WORD + counted))
            await ctx.tick().repeat(Softmax.LATENCY + 1)

    run(softmax, bench, background=[record(softmax.result_valid, softmax.result, found)])
    results = [as_int8(byte) for number in found for byte in to_bytes(number, lanes)]
    assert results == expected
