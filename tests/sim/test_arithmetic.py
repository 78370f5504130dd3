"""The arithmetic of golden model and instruction simulator, which share none, equals that of `hw.spec.arith`."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intloom.compiler.ir import arithmetic as golden
from intloom.hw.spec.arith import Affine, RoundingMode, Scale, round_significand, scale_from_float
from intloom.hw.spec.arith import affine as reference_affine
from intloom.hw.spec.arith import requantize as reference_requantize
from intloom.hw.spec.softmax import softmax as reference_softmax
from intloom.sim.isa_sim import arithmetic as simulator

Requantize = Callable[..., Any]

INT32 = st.integers(-(1 << 31), (1 << 31) - 1) | st.sampled_from([-(1 << 31), (1 << 31) - 1, (1 << 24) + 1])
FACTORS = st.floats(2.0**-40, 4.0, width=32) | st.integers(0, 40).map(lambda e: 2.0**-e)
ZERO_POINTS = st.integers(-128, 127)
MATCHES = st.sampled_from(list(RoundingMode))
FACTOR = st.integers(-(1 << 31), (1 << 31) - 1)
AFFINES = st.builds(Affine, FACTOR, FACTOR, st.integers(-(1 << 47), (1 << 47) - 1), st.integers(0, 47), st.booleans())
TIED = st.builds(Affine, st.integers(-4, 4), st.integers(-4, 4), st.integers(-8, 8), st.integers(0, 4), st.booleans())
BYTE = st.integers(-128, 127)


BOTH = pytest.mark.parametrize("requantize", [golden.requantize, lambda s, *rest: simulator.requantize(s.T, *rest).T])
"""Sums are [channel, pixel] in the golden model and [pixel, channel] in the simulator."""


def run(requantize: Requantize, sums: list[int], scale: Scale, zero: int, match: RoundingMode) -> list[int]:
    mantissa, shift = np.array([scale.mantissa], np.uint32), np.array([scale.shift], np.uint8)
    return requantize(np.array([sums], np.int32), mantissa, shift, zero, match)[0].tolist()


@BOTH
@given(st.lists(INT32, min_size=1, max_size=50), FACTORS, ZERO_POINTS, MATCHES)
def test_requantization_equals_the_reference(
    requantize: Requantize, sums: list[int], factor: float, zero: int, match: RoundingMode
) -> None:
    scale = scale_from_float(factor)
    assert run(requantize, sums, scale, zero, match) == [reference_requantize(s, scale, zero, match) for s in sums]


@BOTH
@given(st.integers(-300, 300), st.integers(0, 30), st.integers(1, (1 << 24) - 1), st.integers(-2, 2), MATCHES)
def test_requantization_equals_the_reference_next_to_ties(
    requantize: Requantize, half: int, spread: int, mantissa: int, step: int, match: RoundingMode
) -> None:
    scale = Scale(mantissa, min(63, mantissa.bit_length() + spread))
    near = ((2 * half + 1) << scale.shift) // (2 * mantissa) + step
    if abs(near) < 1 << 31:
        assert run(requantize, [near], scale, 3, match) == [reference_requantize(near, scale, 3, match)]


@BOTH
@given(INT32, FACTORS)
def test_mode_ort_is_fp32_arithmetic(requantize: Requantize, acc: int, factor: float) -> None:
    scale = scale_from_float(factor)
    single = np.float32(acc) * np.float32(scale.mantissa * 2.0**-scale.shift)
    assert abs(int(np.float32(acc))) == round_significand(abs(acc))
    assert run(requantize, [acc], scale, 0, RoundingMode.ORT) == [int(np.clip(np.rint(single), -128, 127))]


@BOTH
def test_modes_differ_where_fp32_sees_a_tie(requantize: Requantize) -> None:
    noise = np.random.default_rng(7)
    mantissa = noise.integers(1 << 23, 1 << 24, 20_000).astype(np.uint32)
    shift = np.full(mantissa.shape, 40, np.uint8)
    # Sums just below a tie, up to 2**-16 away from it; fp32 sees a tie from 2**-18 on.
    sums = (np.int64(2 * 101 + 1) << 40) // (2 * mantissa.astype(np.int64))
    made = {m: requantize(sums[:, None].astype(np.int32), mantissa, shift, 0, m)[:, 0] for m in RoundingMode}
    for match, values in made.items():
        rows = zip(sums, mantissa, values, strict=True)
        assert all(v == reference_requantize(int(s), Scale(int(m), 40), 0, match) for s, m, v in rows)
    assert 0 < np.count_nonzero(made[RoundingMode.ORT] != made[RoundingMode.EXACT]) < len(sums)


@pytest.mark.parametrize("affine", [golden.affine, simulator.affine])
@given(st.lists(st.tuples(BYTE, BYTE), min_size=1, max_size=40), AFFINES | TIED)
def test_affine_operations_equal_the_reference(affine: Requantize, pairs: list[tuple[int, int]], k: Affine) -> None:
    one, two = (np.array(side, np.int64) for side in zip(*pairs, strict=True))
    assert affine(one, two, k).tolist() == [reference_affine(a, b, k) for a, b in pairs]


@given(st.lists(BYTE, min_size=4, max_size=4), st.integers(1, 4), ZERO_POINTS, st.integers(0, 99))
def test_softmax_of_the_simulator_equals_the_reference(
    values: list[int], channels: int, zp_out: int, seed: int
) -> None:
    """Exponentials: small ones give sums of 0 and ties, large ones a sum that saturates if there are many."""
    exponentials = np.random.default_rng(seed).integers(0, (1, 3, 3, 1 << 24)[seed % 4], 256)
    many = 100 if seed % 3 == 0 else 1
    row = np.array(values * many, np.int8)[None]
    for less, zero in product(range(4), (-128, zp_out)):
        made = simulator.softmax(row, exponentials, less, zero, channels * many)[0].tolist()
        assert made == reference_softmax(values * many, exponentials.tolist(), less, zero, channels * many)


@pytest.mark.parametrize("reach", [1 << 24, 1 << 25, 1 << 26, (1 << 31) - 1])
def test_products_hold_sums_of_every_size(reach: int, seed: int) -> None:
    """Sums up to 2**31 - 1, of odd and even values: neither product loses a bit, and both wrap beyond 32 bits."""
    noise = np.random.default_rng(seed)
    length = reach // (255 * 255)
    left, right = noise.integers(-255, 256, (2, length)), noise.integers(253, 256, (length, 3))
    left[0] = 255
    expected = [[sum(a * b for a, b in zip(x, y, strict=True)) for y in right.T.tolist()] for x in left.tolist()]
    assert expected[0][0] > reach // 2
    wrapped = np.array(expected, np.int64).astype(np.int32)
    np.testing.assert_array_equal(golden.exact_product(left, right, length * 255 * 255), wrapped)
    np.testing.assert_array_equal(simulator.product(left, right), wrapped)
    doubled = np.array(expected, np.int64) * 5
    five = golden.exact_product(np.tile(left, 5), np.tile(right, (5, 1)), 5 * length * 255 * 255)
    np.testing.assert_array_equal(five, doubled.astype(np.int32))
    np.testing.assert_array_equal(simulator.product(np.tile(left, 5), np.tile(right, (5, 1))), five)
