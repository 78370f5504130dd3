"""The vectorized requantization equals that of `hw.spec.arith`, and fp32 arithmetic, at random points."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from intloom.hw.spec.arith import RoundingMode, Scale, round_significand, scale_from_float
from intloom.hw.spec.arith import requantize as reference_requantize
from intloom.sim.golden.requantize import requantize

INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
FACTORS = st.floats(2.0**-40, 4.0, width=32) | st.integers(0, 40).map(lambda e: 2.0**-e)
ZERO_POINTS = st.integers(-128, 127)
MATCHES = st.sampled_from(list(RoundingMode))


def run(sums: list[int], scale: Scale, zero: int, match: RoundingMode) -> list[int]:
    mantissa, shift = np.array([scale.mantissa], np.uint32), np.array([scale.shift], np.uint8)
    return requantize(np.array([sums], np.int32), mantissa, shift, zero, match)[0].tolist()


@given(st.lists(INT32, min_size=1, max_size=50), FACTORS, ZERO_POINTS, MATCHES)
def test_equals_the_reference(sums: list[int], factor: float, zero: int, match: RoundingMode) -> None:
    scale = scale_from_float(factor)
    assert run(sums, scale, zero, match) == [reference_requantize(s, scale, zero, match) for s in sums]


@given(st.integers(-300, 300), st.integers(0, 30), st.integers(1, (1 << 24) - 1), st.integers(-2, 2), MATCHES)
def test_equals_the_reference_next_to_ties(
    half: int, spread: int, mantissa: int, step: int, match: RoundingMode
) -> None:
    scale = Scale(mantissa, min(63, mantissa.bit_length() + spread))
    near = ((2 * half + 1) << scale.shift) // (2 * mantissa) + step
    if abs(near) < 1 << 31:
        assert run([near], scale, 3, match) == [reference_requantize(near, scale, 3, match)]


@given(INT32, FACTORS)
def test_mode_ort_is_fp32_arithmetic(acc: int, factor: float) -> None:
    scale = scale_from_float(factor)
    single = np.float32(acc) * np.float32(scale.mantissa * 2.0**-scale.shift)
    assert abs(int(np.float32(acc))) == round_significand(abs(acc))
    assert run([acc], scale, 0, RoundingMode.ORT) == [int(np.clip(np.rint(single), -128, 127))]


def test_modes_differ_where_fp32_sees_a_tie() -> None:
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
