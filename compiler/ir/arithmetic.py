"""The arithmetic of the golden model on numpy arrays: the functions of `intloom.hw.spec.arith`, vectorized.

NumPy multiplies integers without BLAS, so products of matrices use the floating-point type that holds every sum.
Requantization in mode `ort` is fp32 arithmetic by definition, and IEEE fp32 multiplication in numpy is that definition.
Mode `exact` uses fp64 where the product of sum and mantissa fits its 53 bits, which is checked, and Python integers
elsewhere.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.ir.tensor import Image
from intloom.hw.spec.arith import INT8_MAX, INT8_MIN, Affine, RoundingMode, Scale
from intloom.hw.spec.arith import requantize as requantize_one

_FLOAT32_REACH = 1 << 24
"""float32 holds all integers up to this magnitude."""
_EXACT_BITS = 53


def through(table: bytes | None, values: Image) -> Image:
    """Pass every byte through a table."""
    return values if table is None else np.frombuffer(table, dtype=np.int8)[values.view(np.uint8)]


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


def exact_product(left: NDArray[Any], right: NDArray[Any], reach: int) -> NDArray[np.int32]:
    """`left @ right` as 32-bit accumulators hold it; `reach` bounds the magnitude of every partial sum.

    In float32 where `reach` allows it, else in float64, which holds all sums exactly.
    """
    kind = np.float32 if reach <= _FLOAT32_REACH else np.float64
    # Through int64: a sum beyond 32 bits then wraps like the accumulator, while a direct conversion is undefined.
    sums: NDArray[np.int32] = (left.astype(kind) @ right.astype(kind)).astype(np.int64).astype(np.int32)
    return sums


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
