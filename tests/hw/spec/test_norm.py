"""The integers of a normalization are within 1 of the real results: tables exhaustively, then steps by interval."""

import random
from fractions import Fraction
from math import isqrt

import pytest

from intloom.hw.spec.norm import (
    CONSTANT_BITS,
    EPSILON_BITS,
    FACTOR_BITS,
    GAMMA_FRACTION,
    LARGEST_COUNT,
    OFFSET_BITS,
    ROOT_ERROR,
    VALUE_BITS,
    VALUE_SHIFT,
    error_bound,
    factor_offset,
    fits,
    integer_constant,
    integer_epsilon,
    normalize,
    pack_constants,
    root_error,
    unpack_constants,
)

LARGEST_GAMMA = Fraction((1 << CONSTANT_BITS - 1) - 1, 1 << GAMMA_FRACTION)


def test_the_bound_of_the_root_holds_for_every_mantissa() -> None:
    assert root_error() <= ROOT_ERROR < root_error() * Fraction(102, 100)


def test_every_result_is_within_one_of_the_real_one() -> None:
    """For every number of channels, with the largest factor that the constants hold."""
    assert max(error_bound(count, LARGEST_GAMMA) for count in range(1, LARGEST_COUNT + 1)) < 1


def pixels(rng: random.Random, count: int) -> list[list[int]]:
    """All values equal, one different by 1 or by most, two halves, random ones near each other and far apart."""
    base, at = rng.randint(-128, 126), rng.randrange(count)
    near = [min(127, base + (rng.random() < 0.1)) for _ in range(count)]
    return [
        [base] * count,
        [base + (k == at) for k in range(count)],
        [127 if k == at else -128 for k in range(count)],
        [126 + (k == at) for k in range(count)],
        [127 if k % 2 else -128 for k in range(count)],
        near,
        [rng.randint(-128, 127) for _ in range(count)],
    ]


def real_root(value: Fraction) -> Fraction:
    """A square root, with more than 60 correct bits."""
    scaled = (value.numerator << 300) // value.denominator
    return Fraction(isqrt(scaled), 1 << 150)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("count", [1, 2, 3, 16, 64, 197, 384, 768, 1023, 1024])
def test_results_against_the_real_ones(count: int, center: bool, rng: random.Random) -> None:
    scale = Fraction(rng.uniform(0.001, 0.3))
    for epsilon in (Fraction(0), Fraction(1, 10**12), Fraction(1, 10**5), Fraction(rng.uniform(0, 2))):
        largest = rng.choice((Fraction(1), Fraction(40), LARGEST_GAMMA - 1))
        real = [
            (largest * rng.choice((-1, 1, Fraction(rng.random()))), Fraction(rng.uniform(-300, 300)))
            for _ in range(count)
        ]
        constants = [integer_constant(g, b) for g, b in real]
        assert all(map(fits, constants))
        stored = integer_epsilon(epsilon, scale, count)
        if stored >> EPSILON_BITS:
            continue
        for values in pixels(rng, count):
            zero = rng.choice((0, -128, 127, rng.randint(-128, 127)))
            d = [x - zero for x in values]
            mean = Fraction(sum(d), count) if center else Fraction(0)
            variance = Fraction(sum(v * v for v in d), count) - mean * mean
            root = real_root(variance + epsilon / (scale * scale))
            results = normalize(values, constants, center, zero, stored)
            for v, result, (gamma, beta) in zip(d, results, real, strict=True):
                value = (v - mean) / root * gamma + beta if variance else beta
                assert abs(result - max(Fraction(-128), min(Fraction(127), value))) <= error_bound(count, largest)


@pytest.mark.parametrize("center", [True, False])
def test_numbers_fit_the_widths_of_the_hardware(center: bool, rng: random.Random) -> None:
    """The extremes: the smallest variance with the largest mean, and one channel with all of the variance."""
    reached = []
    for count in (2, 3, 255, 1000, LARGEST_COUNT):
        for large, small in ((255, 254), (255, 0), (1, 0), (-255, -254), (-255, 0), (-1, 0)):
            for many in (False, True):
                d = [small if (k == 0) == many else large for k in range(count)]
                squares = sum(v * v for v in d)
                a, b = factor_offset(count, sum(d), squares, center, 0)
                z = [(v * a - b) >> VALUE_SHIFT for v in set(d)]
                assert 0 <= a < 1 << FACTOR_BITS
                assert abs(b) < 1 << OFFSET_BITS - 1
                assert all(-1 << VALUE_BITS - 1 <= v < 1 << VALUE_BITS - 1 for v in z)
                reached.append((a.bit_length(), abs(b).bit_length(), max(map(abs, z)).bit_length()))
    assert [max(column) for column in zip(*reached, strict=True)][::2] == [FACTOR_BITS - (not center), VALUE_BITS - 1]


@pytest.mark.parametrize("lanes", [1, 8])
def test_constants_are_stored_group_by_group(lanes: int) -> None:
    constants = [(k, -k - 1) for k in range(16)]
    packed = pack_constants(constants, lanes)
    assert packed[:2] == (0).to_bytes(2, "little")
    assert packed[2 * lanes : 2 * lanes + 2] == b"\xff\xff"
    assert unpack_constants(packed, lanes) == constants
