"""Zero points of digits, and the number of steps."""

import pytest

from intloom.compiler.fold.lowering.common.long_sums import _zero_points, step_counts
from intloom.hw.spec.arith import INT8_MAX, INT8_MIN


@pytest.mark.parametrize("zero", range(INT8_MIN, INT8_MAX + 1))
def test_errors_of_zero_points_cancel(zero):
    """The high digits keep the image's zero point, and every digit is a byte."""
    common, (low,) = _zero_points(zero, 1)
    assert 16 * (common - zero) + common - low == 0
    assert low - 8 >= INT8_MIN and low + 7 <= INT8_MAX
    common, (middle, last) = _zero_points(zero, 2)
    assert 256 * (common - zero) + 16 * (common - middle) + common - last == 0
    assert middle - 8 >= INT8_MIN and middle + 7 <= INT8_MAX
    assert last - 16 * 8 >= INT8_MIN and last + 16 * 7 <= INT8_MAX


@pytest.mark.parametrize(
    ("size", "steps"),
    [
        ((1, 1), 0),
        ((1, 512), 0),
        ((40, 40), 1),
        ((80, 80), 2),
        ((160, 160), 2),
        ((320, 320), 2),
        ((1000, 1000), None),
    ],
)
def test_steps(size, steps):
    assert next(iter(step_counts(*size)), None) == steps
