"""Comparison is byte for byte, counts every difference and names the first."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intloom.common.errors import MismatchError
from intloom.sim.compare import compare


@given(st.integers(0, 3 * 4 * 5 - 1), st.integers(1, 255))
def test_one_changed_byte_is_found_where_it_is(position, change):
    expected = np.random.default_rng(0).integers(-128, 128, (1, 3, 4, 5), dtype=np.int8)
    got = expected.copy()
    got.reshape(-1).view(np.uint8)[position] ^= change
    found = compare({"t": expected}, {"t": got})
    assert (found.compared_bytes, found.differing_bytes) == (60, 1)
    (check,) = found.checks
    assert np.ravel_multi_index(check.coordinate, expected.shape) == position
    assert (check.expected, check.got) == (expected.reshape(-1)[position], got.reshape(-1)[position])
    with pytest.raises(MismatchError, match="tensor 't' differs from golden in 1 of 60 values, at "):
        found.require_equal()


def test_equal_tensors_are_equal():
    array = np.zeros((1, 2, 3, 4), np.int8)
    found = compare({"t": array}, {"t": array.copy()})
    assert not found.differing_bytes
    found.require_equal()


def test_other_tensors_or_shapes_are_refused():
    array = np.zeros((1, 2, 3, 4), np.int8)
    with pytest.raises(MismatchError, match=r"must give tensors \['a'\], not \['b'\]"):
        compare({"a": array}, {"b": array})
    with pytest.raises(MismatchError, match="ran different programs"):
        compare({"a": array}, {"a": array[:, :1]})
