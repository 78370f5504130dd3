"""Outputs of the model, of any type, differ in the values that differ, NaN included."""

import numpy as np
import pytest

from intloom.flow.checking import compare_outputs

NAN = float("nan")


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.uint8, np.bool_])
def test_the_first_difference_and_all_bytes_are_told(dtype: type, seed: int) -> None:
    rng = np.random.default_rng(seed)
    expected = rng.integers(0, 2, (3, 4, 5)).astype(dtype)
    (same,) = compare_outputs({"y": expected.copy()}, {"y": expected}, "it")
    assert (same.bytes, same.mismatches, same.coordinate) == (expected.nbytes, 0, ())
    positions = np.sort(rng.choice(expected.size, 7, replace=False))
    got = expected.copy()
    got.flat[positions] = 1 - got.flat[positions] if dtype is not np.bool_ else ~got.flat[positions]
    (check,) = compare_outputs({"y": got}, {"y": expected}, "it")
    assert (check.tensor, check.against, check.bytes) == ("y", "it", expected.nbytes)
    assert check.mismatches == 7 * expected.itemsize
    assert check.coordinate == np.unravel_index(positions[0], expected.shape)
    assert f"expected {expected.flat[positions[0]]}, got {got.flat[positions[0]]}" in check.first


@pytest.mark.parametrize(("got", "expected", "differ"), [(NAN, NAN, 0), (NAN, 1, 1), (1, NAN, 1), (0.0, -0.0, 0)])
def test_only_two_nans_are_equal(got: float, expected: float, differ: int) -> None:
    values = [np.array([2, value], np.float32) for value in (got, expected)]
    (check,) = compare_outputs({"y": values[0]}, {"y": values[1]}, "it")
    assert (check.mismatches, check.coordinate) == (4 * differ, (1,) * differ)


def test_another_shape_differs_in_all_bytes() -> None:
    (check,) = compare_outputs({"y": np.zeros((2, 3), np.int32)}, {"y": np.zeros((3, 2), np.int32)}, "it")
    assert (check.bytes, check.mismatches) == (24, 24)
    assert "expected shape (3, 2), got (2, 3)" in check.first
