"""Scale normalizer, one scale a cycle, against its model and the invariant factor."""

import random
from fractions import Fraction
from typing import Any

import pytest

from intloom.hw.mac.epilogue.scale_normalizer import ScaleNormalizer
from tests.hw.streams import made, run


@pytest.mark.parametrize("bits", [8, 9, 24])
def test_scale_normalizer_equals_its_model(bits: int, rng: random.Random) -> None:
    # Powers of two: each bit alone decides how far to shift.
    mantissas = [1 << bit for bit in range(bits)] + [rng.getrandbits(rng.randint(0, bits)) for _ in range(160)]
    scales = [(mantissa, rng.randrange(64)) for mantissa in mantissas]
    normalizer = made(ScaleNormalizer, bits)
    results: list[tuple[int, int]] = []

    async def bench(ctx: Any) -> None:
        for cycle in range(len(scales) + normalizer.LATENCY):
            if cycle >= normalizer.LATENCY:
                results.append((ctx.get(normalizer.mantissa), ctx.get(normalizer.exponent)))
            if cycle < len(scales):
                ctx.set(normalizer.word, scales[cycle][0] | scales[cycle][1] << 24)
            await ctx.tick()

    run(normalizer, bench)
    expected = [ScaleNormalizer.model(*scale, bits) for scale in scales]
    assert results == expected


@pytest.mark.parametrize("bits", [8, 9, 24])
def test_model_keeps_the_factor_and_sets_the_top_bit(bits: int, rng: random.Random) -> None:
    for _ in range(200):
        mantissa, shift = rng.randrange(1, 1 << rng.randint(1, bits)), rng.randrange(64)
        normal, exponent = ScaleNormalizer.model(mantissa, shift, bits)
        assert Fraction(normal, 1 << exponent) == Fraction(mantissa, 1 << shift)
        assert normal.bit_length() == bits
