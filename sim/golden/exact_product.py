"""Products of integer matrices modulo 2**32, by floating-point arithmetic: NumPy multiplies integers without BLAS."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_FLOAT32_REACH = 1 << 24
"""float32 holds all integers up to this magnitude."""


def exact_product(left: NDArray[Any], right: NDArray[Any], reach: int) -> NDArray[np.int32]:
    """`left @ right` as 32-bit accumulators hold it; `reach` bounds the magnitude of every partial sum.

    In float32 where `reach` allows it, else in float64, which holds all sums exactly.
    """
    kind = np.float32 if reach <= _FLOAT32_REACH else np.float64
    # Through int64: a sum beyond 32 bits then wraps like the accumulator, while a direct conversion is undefined.
    sums: NDArray[np.int32] = (left.astype(kind) @ right.astype(kind)).astype(np.int64).astype(np.int32)
    return sums
