"""Pair correction: the marks of all groups add up to exactly the missing corrections."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from intloom.compiler.fold.arithmetic.pair_correction import _MARK, marked_groups

PAIRS = st.dictionaries(st.tuples(st.integers(0, 255), st.integers(0, 255)), st.sampled_from([-1, 1]), max_size=40)


def marks(codes):
    """Marks of all pairs: the two tables, their int8-saturated sum, and its table."""
    left, right = (c.astype(np.int64) for c in codes)
    total = np.clip(left[:, None] + right[None, :], -128, 127)
    return (total == _MARK).astype(np.int64) - (total == -_MARK)


@given(PAIRS.filter(bool))
def test_groups_mark_what_is_missing_and_nothing_else(pairs):
    missing = np.zeros((256, 256), np.int64)
    for pair, sign in pairs.items():
        missing[pair] = sign
    groups = marked_groups(missing)
    if groups is None:
        assert len(pairs) > 4  # a group holds at least one pair
    else:
        np.testing.assert_array_equal(sum(marks(g) for g in groups), missing)


def test_a_grid_of_pairs_takes_several_groups():
    """Pairs in crossing rows and columns share codes, so one group is not enough."""
    missing = np.zeros((256, 256), np.int64)
    missing[3, 5] = missing[3, 9] = missing[7, 5] = 1
    groups = marked_groups(missing)
    assert len(groups) > 1
    np.testing.assert_array_equal(sum(marks(g) for g in groups), missing)


def test_too_many_or_too_large_errors_are_given_up():
    assert marked_groups(np.eye(256, dtype=np.int64)) is None
    missing = np.zeros((256, 256), np.int64)
    missing[0, 0] = 2
    assert marked_groups(missing) is None
    assert marked_groups(np.zeros((256, 256), np.int64)) is None
