"""A vectorized implementation of `intloom.hw.spec.arith.affine`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from intloom.hw.spec.arith import INT8_MAX, INT8_MIN, Affine


def affine(x1: NDArray[np.int64], x2: NDArray[np.int64] | int, k: Affine) -> NDArray[np.int8]:
    """`clamp((x1*m1 + x2*m2 + c) * 2**-shift)`, ties up or to even."""
    total = x1 * k.m1
    total += x2 * k.m2 + k.c
    if k.shift:
        half = 1 << (k.shift - 1)
        if k.even:
            # Ties to even: the half, less one where the quotient is even.
            total += (total >> k.shift & 1) - 1
        total += half
        total >>= k.shift
    return np.clip(total, INT8_MIN, INT8_MAX).astype(np.int8)
