"""Two affine operations and a table are exact at every point, whatever the rounding of ties."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from intloom.compiler.fold.arithmetic.affine_fit import SampledFunction, apply, fit_affine
from intloom.compiler.fold.arithmetic.irregular_ties import fit_bracket

RATIOS = st.sampled_from([1 / 2, 1 / 4, 3 / 8, 3 / 16, 1 / 3, 1 / 6, 2 / 7, 0.05, 0.0123])
POINTS = np.arange(-700, 700)


def tied(ratio, zero, directions):
    """A rounded line whose ties round up where the lower result is in `directions`, otherwise down."""
    value = POINTS * ratio
    floor = np.floor(value + 1e-9).astype(np.int64)
    part = value - floor
    up = np.where(np.abs(part - 0.5) < 1e-6, np.isin(floor + zero, list(directions)), part > 0.5)
    return np.clip(floor + up + zero, -128, 127)


def made(bracket):
    low, high = (apply(POINTS, np.zeros_like(POINTS), affine) for affine in (bracket.low, bracket.high))
    return low + (high - low) * bracket.up[low & 0xFF]


@given(RATIOS, st.integers(-60, 60), st.sets(st.integers(-128, 126)))
@example(3 / 8, -1, {126})
@example(3 / 8, 0, set(range(-127, 127)))
def test_every_choice_of_directions_is_met(ratio, zero, directions):
    wanted = tied(ratio, zero, directions)
    bracket = fit_bracket(SampledFunction(POINTS, np.zeros_like(POINTS), wanted), ratio)
    assert bracket is not None
    np.testing.assert_array_equal(made(bracket), wanted)


def test_one_affine_operation_alone_is_not_enough():
    wanted = tied(1 / 4, 0, {3, 4, 8, 11})
    goal = SampledFunction(POINTS, np.zeros_like(POINTS), wanted)
    assert fit_affine(goal, (1 / 4, 0.0)) is None
    assert fit_bracket(goal, 1 / 4) is not None


def test_what_is_no_line_is_given_up():
    bent = np.clip(np.abs(POINTS) // 8, -128, 127)
    assert fit_bracket(SampledFunction(POINTS, np.zeros_like(POINTS), bent), 1 / 8) is None
