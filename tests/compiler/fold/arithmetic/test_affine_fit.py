"""Affine fits are exact at every point, or are corrected pair by pair."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intloom.compiler.fold.arithmetic.affine_fit import (
    SampledFunction,
    _Constants,
    apply,
    closest_affine,
    finest_shift,
    fit_affine,
    fit_affine_with_table,
)
from intloom.compiler.fold.arithmetic.pair_correction import _codes
from intloom.hw.spec.arith import CONSTANT_BITS, Affine

BYTES = np.arange(-128, 128, dtype=np.int64)
A, B = (m.ravel() for m in np.meshgrid(BYTES, BYTES, indexing="ij"))
RATIO = st.floats(0.0625, 4.0, width=32)
ZERO = st.integers(-128, 127)


def fp32_sum(ra: float, rb: float, za: int, zb: int, zc: int) -> np.ndarray:
    """A quantized sum in fp32 arithmetic, with the zero point added before rounding."""
    f = np.float32
    fix = f(zc) - (f(ra) * f(za) + f(rb) * f(zb))
    return np.clip(np.rint((fix + A.astype(f) * f(ra)) + B.astype(f) * f(rb)), -128, 127).astype(np.int64)


@settings(max_examples=30)
@given(RATIO, RATIO, ZERO, ZERO, ZERO)
def test_sums_are_exact_or_corrected(ra: float, rb: float, za: int, zb: int, zc: int) -> None:
    wanted = fp32_sum(ra, rb, za, zb, zc)
    goal = SampledFunction(A, B, wanted)
    affine = fit_affine(goal, (ra, rb))
    if affine is not None:
        np.testing.assert_array_equal(apply(A, B, affine), wanted)
        return
    affine, missing = closest_affine(goal, (ra, rb))
    np.testing.assert_array_equal(apply(A, B, affine) + missing, wanted)


@given(
    st.tuples(RATIO, RATIO), st.tuples(ZERO, ZERO, ZERO), st.integers(8, 24), st.integers(-3, 3), st.booleans(),
    st.booleans(),
)  # fmt: skip
def test_tight_points_give_the_constant_of_all_points(ratios, zeros, shift, step, even, clamped) -> None:
    """The middle of what every point allows, computed from all of them."""
    wanted = fp32_sum(*ratios, *zeros)
    low, high = (-20, 30) if clamped else (-128, 127)
    clamps = np.clip(np.arange(256, dtype=np.uint8).view(np.int8), low, high) if clamped else None
    goal = SampledFunction(A, B, np.clip(wanted, low, high), clamps)
    shift = min(shift, finest_shift(ratios) - 1)
    m1, m2 = round(ratios[0] * 2**shift) + step, round(ratios[1] * 2**shift)
    bounds = []
    for rounding in (0.5, -0.5):
        # Of the reals that round to a result, the end that still does.
        owned = np.where(goal.result % 2 == 0, 0, 1) if even else np.full(A.size, 0 if rounding > 0 else 1)
        end = goal.result * 2**shift - int(rounding * 2**shift) + (owned if rounding > 0 else -owned)
        decides = goal.result > low if rounding > 0 else goal.result < high
        bounds.append((end - A * m1 - B * m2)[decides])
    if not bounds[0].size or not bounds[1].size:
        return
    expected = (int(bounds[0].max()) + int(bounds[1].min())) // 2
    found = _Constants(goal, ratios, force=True).middle(m1, m2, shift, even=even)
    assert found == Affine(m1, m2, expected, shift, even)


@pytest.mark.parametrize("bits", [CONSTANT_BITS - 2, CONSTANT_BITS - 1, CONSTANT_BITS])
def test_a_constant_that_does_not_fit_its_field_is_no_candidate(bits: int) -> None:
    """The constant is -(2**bits): that of values far from 0, whose differences are the results."""
    near = np.arange(-9, 10, dtype=np.int64)
    goal = SampledFunction(near + (1 << bits - 20), np.zeros_like(near), near)
    found = _Constants(goal, (1.0, 0.0), force=False).middle(1 << 20, 0, 20, even=False)
    assert (found is not None) == (bits < CONSTANT_BITS - 1)


@pytest.mark.parametrize("ratios", [(1.0, 1.0), (0.5, 0.5), (0.25, 0.5), (1.0, 0.5)])
@pytest.mark.parametrize("zero", [0, 1])
def test_ties_of_powers_of_two_go_to_even(ratios: tuple[float, float], zero: int) -> None:
    wanted = fp32_sum(*ratios, 0, 0, zero)
    affine = fit_affine(SampledFunction(A, B, wanted), ratios)
    assert affine is not None


@pytest.mark.parametrize("zero", [0, 1, 127, -128])
def test_rounding_before_an_odd_zero_point(zero: int) -> None:
    """An average of four rounds ties to even and then adds the zero point."""
    sums = np.arange(-512, 509, dtype=np.int64)
    wanted = np.clip(np.rint(sums / 4).astype(np.int64) + zero, -128, 127)
    found = fit_affine_with_table(SampledFunction(sums, np.zeros_like(sums), wanted), (0.25, 0.0))
    assert found is not None
    affine, table = found
    made = apply(sums, np.zeros_like(sums), affine)
    np.testing.assert_array_equal(made if table is None else table[made & 0xFF], wanted)


@given(st.sets(st.tuples(st.integers(0, 255), st.integers(0, 255)), min_size=1, max_size=6), st.booleans())
def test_marks_are_exactly_the_missing_pairs(pairs: set[tuple[int, int]], down: bool) -> None:
    missing = np.zeros((256, 256), np.int64)
    for a, b in pairs:
        missing[a, b] = -1 if down else 1
    codes = _codes(missing)
    if codes is None:  # pairs that share bytes in a square cannot be told apart
        assert len({a for a, _ in pairs}) < len(pairs) or len({b for _, b in pairs}) < len(pairs)
        return
    total = codes[0].astype(int)[:, None] + codes[1].astype(int)[None, :]
    np.testing.assert_array_equal((total == 100).astype(int) - (total == -100), missing)


def test_apply_equals_the_affine_operation_of_the_specification() -> None:
    from intloom.hw.spec.arith import affine

    for k in (Affine(3, -5, 7, 2, even=True), Affine(1, 1, 0, 0), Affine(9, 9, -4, 3)):
        one, two = A[::997], B[::997]
        assert apply(one, two, k).tolist() == [affine(int(a), int(b), k) for a, b in zip(one, two, strict=True)]
