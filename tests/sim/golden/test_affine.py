"""The vectorized affine operation equals that of `intloom.hw.spec.arith`."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from intloom.hw.spec.arith import Affine
from intloom.hw.spec.arith import affine as reference_affine
from intloom.sim.golden.affine import affine

FACTOR = st.integers(-(1 << 31), (1 << 31) - 1)
AFFINES = st.builds(Affine, FACTOR, FACTOR, st.integers(-(1 << 47), (1 << 47) - 1), st.integers(0, 47), st.booleans())
TIED = st.builds(Affine, st.integers(-4, 4), st.integers(-4, 4), st.integers(-8, 8), st.integers(0, 4), st.booleans())
BYTE = st.integers(-128, 127)


@given(st.lists(st.tuples(BYTE, BYTE), min_size=1, max_size=40), AFFINES | TIED)
def test_equals_the_reference(pairs: list[tuple[int, int]], k: Affine) -> None:
    one, two = (np.array(side, np.int64) for side in zip(*pairs, strict=True))
    assert affine(one, two, k).tolist() == [reference_affine(a, b, k) for a, b in pairs]
