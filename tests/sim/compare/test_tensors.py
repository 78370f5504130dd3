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
    assert (found.compared_bytes, found.differing_bytes, found.equal) == (60, 1, False)
    m = found.mismatches[0]
    assert (m.channel * 4 + m.y) * 5 + m.x == position
    assert (m.expected, m.got) == (expected.reshape(-1)[position], got.reshape(-1)[position])
    with pytest.raises(MismatchError, match=rf"1 of 60 values differ, first at channel {m.channel}, y {m.y}, x {m.x}"):
        found.require_equal()


def test_equal_tensors_are_equal():
    array = np.zeros((1, 2, 3, 4), np.int8)
    found = compare({"t": array}, {"t": array.copy()})
    assert found.equal
    found.require_equal()


def test_other_tensors_or_shapes_are_refused():
    array = np.zeros((1, 2, 3, 4), np.int8)
    with pytest.raises(MismatchError, match=r"must give tensors \['a'\] as golden does, not \['b'\]"):
        compare({"a": array}, {"b": array})
    with pytest.raises(MismatchError, match="ran different programs"):
        compare({"a": array}, {"a": array[:, :1]})
