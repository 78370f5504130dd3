"""A vectorized implementation of `intloom.hw.spec.arith.requantize`: int32 sums to int8, by a scale per channel.

Mode `ort` is fp32 arithmetic by definition, and IEEE fp32 multiplication in numpy is that definition. Mode
`exact` uses fp64 where the product of sum and mantissa fits its 53 bits, which is checked, and Python integers
elsewhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from intloom.hw.spec.arith import INT8_MAX, INT8_MIN, RoundingMode, Scale
from intloom.hw.spec.arith import requantize as requantize_one

_EXACT_BITS = 53


def requantize(
    sums: NDArray[np.int32],
    mantissa: NDArray[np.uint32],
    shift: NDArray[np.uint8],
    zero_point: int,
    match: RoundingMode,
) -> NDArray[np.int8]:
    """Requantize `sums` of shape (channels, pixels), each row with its own scale."""
    # fp32 rounds the sum to 24 bits and the product once more, as onnxruntime's kernels do; float64 is exact below
    # 2**53.
    kind = np.float32 if match is RoundingMode.ORT else np.float64
    factor = np.ldexp(mantissa.astype(np.float64), -shift.astype(np.int64)).astype(kind)
    if match is RoundingMode.EXACT and not _fits(sums, mantissa):
        return _one_by_one(sums, mantissa, shift, zero_point)
    scaled: NDArray[Any] = sums.astype(kind)
    scaled *= factor[:, None]
    np.rint(scaled, out=scaled)
    scaled += kind(zero_point)
    np.clip(scaled, INT8_MIN, INT8_MAX, out=scaled)
    return scaled.astype(np.int8)


def _fits(sums: NDArray[np.int32], mantissa: NDArray[np.uint32]) -> bool:
    if not sums.size:
        return True
    largest = max(int(sums.max()), -int(sums.min()))
    return largest * int(mantissa.max()) < 1 << _EXACT_BITS


def _one_by_one(
    sums: NDArray[np.int32], mantissa: NDArray[np.uint32], shift: NDArray[np.uint8], zero_point: int
) -> NDArray[np.int8]:
    out = np.empty(sums.shape, dtype=np.int8)
    for row, values in enumerate(sums):
        scale = Scale(int(mantissa[row]), int(shift[row]))
        # Python's integers have no limit of bits.
        out[row] = [requantize_one(int(v), scale, zero_point, RoundingMode.EXACT) for v in values]
    return out
