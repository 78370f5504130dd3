"""The integers of a Softmax are within 1 of the real results, and the byte format of its exponentials."""

import random
from fractions import Fraction

import numpy as np
import pytest

from intloom.compiler.fold.arithmetic.integer_softmax import MOST_VALUES, exponentials
from intloom.hw.spec.isa import BY_KIND, Kind
from intloom.hw.spec.softmax import (
    EXPONENTIAL_BITS,
    EXPONENTIAL_ERROR,
    LARGEST_TOTAL,
    MOST_LESS,
    error_bound,
    largest_exponential,
    numerator,
    pack_exponentials,
    quotient,
    softmax,
    unpack_exponentials,
)

TOP = (1 << EXPONENTIAL_BITS) - 1


def test_exponentials_at_their_limits_are_little_endian() -> None:
    numbers = [0, 1, TOP - 1, TOP, 1 << EXPONENTIAL_BITS - 1]
    packed = pack_exponentials(numbers)
    assert packed.hex(" ", 3) == "000000 010000 feffff ffffff 000080"
    assert unpack_exponentials(packed) == numbers


@pytest.mark.parametrize("number", [-1, TOP + 1])
def test_a_number_of_more_bits_is_refused(number: int) -> None:
    with pytest.raises(OverflowError):
        pack_exponentials([number])


@pytest.mark.parametrize("count", [1, 2, 256, 257, 4000])
def test_the_sum_of_the_largest_exponentials_fits(count: int) -> None:
    one = largest_exponential(count)
    assert one <= TOP
    assert one * count <= LARGEST_TOTAL
    assert one == TOP or (one + 1) * count > LARGEST_TOTAL


def test_the_field_holds_what_may_be_missing_of_256() -> None:
    assert BY_KIND[Kind.VSOFTMAX].field("less").maximum == MOST_LESS == 3


def real_exponential(x: Fraction) -> Fraction:
    """exp(-x) for x >= 0 with an error below 2**-200: the series of a small part of x, squared again and again."""
    bits, halvings = 300, max(0, int(x).bit_length()) + 10
    part = int(x * (1 << bits - halvings))
    term = total = 1 << bits
    for k in range(1, 40):
        term = -term * part // (k << bits)
        total += term
    for _ in range(halvings):
        total = total * total >> bits
    return Fraction(total, 1 << bits)


def test_the_bound_is_below_one_for_every_number_of_values() -> None:
    assert max(map(error_bound, range(1, MOST_VALUES + 1))) < 1


def test_quotients_are_rounded_by_at_most_one_half(rng: random.Random) -> None:
    """All sums up to 64 and all exponentials, then sums of all sizes."""
    pairs = [(e, s) for s in range(1, 65) for e in range(s + 1)]
    pairs += [
        (rng.randint(0, s), s) for s in (rng.randint(1, LARGEST_TOTAL) >> rng.randint(0, 31) or 1 for _ in range(3000))
    ]
    for less in range(MOST_LESS + 1):
        for e, s in pairs:
            assert abs(2 * s * quotient(numerator(e, s, less), s) - 2 * e * (256 - less)) <= s


@pytest.mark.parametrize("count", [1, 2, 3, 16, 197, 256, 257, 1000, 1024, MOST_VALUES])
def test_results_against_the_real_ones(count: int, rng: random.Random) -> None:
    """Values that are equal, near each other, and far apart; scales from that of rounding only to one step for 1."""
    for scale in (2.0**-149, 2.0 ** rng.uniform(-20, -7), 2.0 ** rng.uniform(-7, 1), 1e30):
        table = exponentials(scale, count)
        step = Fraction(float(np.float32(scale)))
        real = [real_exponential(d * step) for d in range(255, -1, -1)]
        one = largest_exponential(count)
        assert table[255] == one
        assert all(abs(e - one * r) <= EXPONENTIAL_ERROR for e, r in zip(table, real, strict=True))
        at, less = rng.randrange(count), rng.randint(0, MOST_LESS)
        for values in (
            [rng.randint(-128, 127)] * count,
            [127 if k == at else 126 for k in range(count)],
            [rng.choice((-128, 126, 127)) for _ in range(count)],
            [rng.randint(-128, 127) for _ in range(count)],
        ):
            total = sum(real[255 + x - max(values)] for x in values)
            for x, result in set(zip(values, softmax(values, table, less, -128), strict=True)):
                expected = real[255 + x - max(values)] / total * (256 - less)
                assert abs(result + 128 - min(expected, 255)) <= error_bound(count)
