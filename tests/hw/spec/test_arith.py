"""Fixed-point semantics against exact fractions on small ranges, and mode `ort` against fp32 arithmetic."""

from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from intloom.common.errors import EncodingError
from intloom.hw.spec.arith import (
    FP32_SIGNIFICAND_BITS,
    MAX_SHIFT,
    Affine,
    RoundingMode,
    Scale,
    add,
    affine,
    average,
    multiply,
    requantize,
    round_significand,
    saturate,
    scale_from_float,
    shift_round_even,
    shift_round_up,
    to_fp32,
    wrap,
)

INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
INT8 = st.integers(-128, 127)
FP32_FACTORS = st.floats(2.0**-70, 2.0**23, width=32)


def clamp(value: int) -> int:
    """Saturation to int8, independent of the specification's code."""
    return sorted((-128, value, 127))[1]


def test_saturate_and_wrap_exhaustively():
    for value in range(-1200, 1200):
        assert saturate(value) == clamp(value)
        assert saturate(value, -8, 7) == sorted((-8, value, 7))[1]
        assert wrap(value, 8) == int(np.int64(value).astype(np.int8))
    assert wrap(1 << 31, 32) == -(1 << 31)


def test_rounding_shifts_exhaustively():
    for shift in range(9):
        for value in range(-1100, 1100):
            exact = Fraction(value, 1 << shift)
            assert shift_round_even(value, shift) == round(exact)
            assert shift_round_up(value, shift) == floor(exact + Fraction(1, 2))


def test_round_significand_exhaustively_at_few_bits():
    for bits in (1, 3, 5):
        for value in range(4096):
            ulp = 1 << max(0, value.bit_length() - bits)
            assert round_significand(value, bits) == round(Fraction(value, ulp)) * ulp


@given(st.integers(0, (1 << 63) - 1))
def test_round_significand_is_the_conversion_to_fp32(value: int):
    assert round_significand(value) == int(np.float32(value))


@given(FP32_FACTORS)
def test_a_scale_holds_an_fp32_factor_exactly(factor: float):
    scale = scale_from_float(factor)
    if factor >= 2.0 ** (FP32_SIGNIFICAND_BITS - 1 - MAX_SHIFT):
        assert Fraction(scale.mantissa, 1 << scale.shift) == Fraction(factor)
        assert scale.mantissa.bit_length() == FP32_SIGNIFICAND_BITS
    assert 0 <= scale.shift <= MAX_SHIFT


@given(FP32_FACTORS, st.integers(8, 23))
def test_a_shorter_scale_is_the_nearest_one(factor: float, bits: int):
    scale = scale_from_float(factor, bits)
    if factor >= 2.0**bits * (1 - 2.0 ** -(bits + 1)):
        assert scale == Scale((1 << bits) - 1, 0)
        return
    assert scale.mantissa.bit_length() <= bits
    error = abs(Fraction(scale.mantissa, 1 << scale.shift) - Fraction(factor))
    assert error <= Fraction(factor) / (1 << bits) + Fraction(1, 1 << (MAX_SHIFT + 1))


@given(st.floats(0, 2.0 ** (FP32_SIGNIFICAND_BITS - MAX_SHIFT - 1), width=32), INT32, st.sampled_from(RoundingMode))
def test_factors_too_small_to_matter_give_zero(factor: float, acc: int, match: RoundingMode):
    assert requantize(acc, scale_from_float(factor), 5, match) == 5 + round(acc * Fraction(factor))


@given(st.floats(2.0**24, 2.0**90, width=32), INT32, st.sampled_from(RoundingMode), st.integers(-128, 127))
def test_factors_that_send_every_sum_beyond_the_clamp(factor: float, acc: int, match: RoundingMode, zero: int):
    wanted = max(-128, min(127, zero + round(acc * Fraction(factor))))
    assert requantize(acc, scale_from_float(factor), zero, match) == wanted


@pytest.mark.parametrize("factor", [-1.0, -1e-30, float("inf"), float("nan"), 1e39])
def test_factors_that_are_no_scale_are_refused(factor: float):
    with pytest.raises(EncodingError, match="requantization scale must be"):
        scale_from_float(factor)


def test_exact_requantization_exhaustively_on_small_ranges():
    for shift in range(10):
        for mantissa in (1, 2, 3, 5, 8, 127, 128, 200, 255):
            for acc in range(-300, 300):
                wanted = clamp(round(Fraction(acc * mantissa, 1 << shift)) - 3)
                assert requantize(acc, Scale(mantissa, shift), -3, RoundingMode.EXACT) == wanted


@given(INT32, FP32_FACTORS, INT8)
def test_exact_requantization_is_the_rounded_fraction(acc: int, factor: float, zero: int):
    scale = scale_from_float(factor)
    wanted = clamp(round(Fraction(acc * scale.mantissa, 1 << scale.shift)) + zero)
    assert requantize(acc, scale, zero, RoundingMode.EXACT) == wanted


def fp32_requantize(acc: NDArray[np.int64], scale: np.float32, zero: int) -> NDArray[np.int64]:
    """What fp32 hardware computes: convert, multiply, clamp, round half to even, add the zero point."""
    product = acc.astype(np.int32).astype(np.float32) * scale
    low, high = np.float32(-128 - zero), np.float32(127 - zero)
    return np.rint(np.clip(product, low, high)).astype(np.int64) + zero


def near_ties(rng: np.random.Generator, scale: np.float32, count: int) -> NDArray[np.int64]:
    """Sums whose product with `scale` lies at or next to a half."""
    halves = rng.integers(-140, 140, count) + 0.5
    sums = np.rint(halves / np.float64(scale)) + rng.integers(-2, 3, count)
    return np.clip(sums, -(2.0**31), 2.0**31 - 1).astype(np.int64)


def random_scale(rng: np.random.Generator) -> np.float32:
    """A scale as networks have them, or one with few mantissa bits, whose products often are ties."""
    shift = rng.integers(1, 30)
    odd = rng.integers(1, 1 << 9) if rng.random() < 0.5 else rng.integers(1 << 23, 1 << 24) * 2.0**-15
    return np.float32(odd * 2.0**-shift)


def count_differences(rng: np.random.Generator, cases: int, match: RoundingMode = RoundingMode.ORT) -> int:
    """How often requantization differs from fp32 arithmetic in `cases` random and tie-heavy cases."""
    differences, chunk = 0, 2000
    for _ in range(cases // chunk):
        scale, zero = random_scale(rng), int(rng.integers(-128, 128))
        factor = scale_from_float(float(scale))
        spread = 1 << int(rng.integers(1, 32))
        wide = rng.integers(-spread, spread, chunk // 2).clip(-(1 << 31), (1 << 31) - 1)
        acc = np.concatenate([wide, near_ties(rng, scale, chunk // 2)])
        ours = [requantize(a, factor, zero, match) for a in acc.tolist()]
        differences += int(np.count_nonzero(fp32_requantize(acc, scale, zero) != ours))
    return differences


@pytest.mark.parametrize("count", [1_000_000, pytest.param(10_000_000, marks=pytest.mark.nightly)])
def test_mode_ort_is_fp32_arithmetic(count: int, seed: int):
    assert count_differences(np.random.default_rng(seed), count) == 0


def test_these_cases_tell_the_modes_apart(seed: int):
    """The comparison detects requantization without fp32's double rounding."""
    assert count_differences(np.random.default_rng(seed), 200_000, RoundingMode.EXACT) > 0


INT48 = st.integers(-(1 << 47), (1 << 47) - 1)


@given(INT8, INT8, INT32, INT32, INT48, st.integers(0, 47))
def test_affine_is_the_rounded_fraction(a: int, b: int, m1: int, m2: int, c: int, shift: int):
    exact = Fraction(a * m1 + b * m2 + c, 1 << shift)
    assert affine(a, b, Affine(m1, m2, c, shift, even=True)) == clamp(round(exact))
    assert affine(a, b, Affine(m1, m2, c, shift, even=False)) == clamp(floor(exact + Fraction(1, 2)))


@given(INT8, INT8, INT8, INT8, st.integers(1, 1 << 16), st.booleans())
def test_sum_product_and_average_are_the_affine_operation(a: int, b: int, za: int, zb: int, m: int, even: bool):
    k = Affine(m, 2 * m + 1, 0, 10, even)
    assert add(a, b, k) == affine(a, b, k)
    assert multiply(a, b, za, zb, k) == affine((a - za) * (b - zb), 0, k)
    assert average(37 * a, k) == affine(37 * a, 0, k)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_to_fp32_keeps_fp32_numbers(value: float):
    assert to_fp32(value) == value
