"""Codes for single pairs: the marks of all groups add up to exactly what is missing."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from intloom.compiler.fold.arithmetic.pair_correction import _MARK, _groups

PAIRS = st.dictionaries(st.tuples(st.integers(0, 255), st.integers(0, 255)), st.sampled_from([-1, 1]), max_size=40)


def marks(codes):
    """What the two tables and the sum's table give for all pairs, with the sum saturating as an int8."""
    left, right = (c.astype(np.int64) for c in codes)
    total = np.clip(left[:, None] + right[None, :], -128, 127)
    return (total == _MARK).astype(np.int64) - (total == -_MARK)


@given(PAIRS.filter(bool))
def test_groups_mark_what_is_missing_and_nothing_else(pairs):
    missing = np.zeros((256, 256), np.int64)
    for place, sign in pairs.items():
        missing[place] = sign
    groups = _groups(missing)
    if groups is None:
        assert len(pairs) > 4  # a group takes at least any one pair
    else:
        np.testing.assert_array_equal(sum(marks(g) for g in groups), missing)


def test_a_grid_of_pairs_takes_several_groups():
    """Rows and columns that cross tie the codes together: one group is not enough."""
    missing = np.zeros((256, 256), np.int64)
    missing[3, 5] = missing[3, 9] = missing[7, 5] = 1
    groups = _groups(missing)
    assert len(groups) > 1
    np.testing.assert_array_equal(sum(marks(g) for g in groups), missing)


def test_too_many_or_too_large_errors_are_given_up():
    assert _groups(np.eye(256, dtype=np.int64)) is None
    missing = np.zeros((256, 256), np.int64)
    missing[0, 0] = 2
    assert _groups(missing) is None
    assert _groups(np.zeros((256, 256), np.int64)) is None
