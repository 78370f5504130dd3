"""The arithmetic of the golden model on numpy arrays: the functions of `intloom.hw.spec.arith`, vectorized.

NumPy multiplies integers without BLAS, so products of matrices use the floating-point type that holds every sum.
Requantization in mode `ort` is fp32 arithmetic by definition, and IEEE fp32 multiplication in numpy is that definition.
Mode `exact` is integer arithmetic.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.ir.tensor import Image
from intloom.hw.spec.arith import INT8_MAX, INT8_MIN, Affine, RoundingMode

_FLOAT32_REACH = 1 << 24
"""float32 holds all integers up to this magnitude."""


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
    if match is RoundingMode.EXACT:
        rounded = _exact(sums, mantissa, shift)
        return np.clip(rounded + zero_point, INT8_MIN, INT8_MAX).astype(np.int8)
    # fp32 rounds the sum to 24 bits and the product once more, as onnxruntime's kernels do.
    factor = np.ldexp(mantissa.astype(np.float64), -shift.astype(np.int64)).astype(np.float32)
    scaled = sums.astype(np.float32)
    scaled *= factor[:, None]
    np.rint(scaled, out=scaled)
    scaled += np.float32(zero_point)
    np.clip(scaled, INT8_MIN, INT8_MAX, out=scaled)
    return scaled.astype(np.int8)


def _exact(sums: NDArray[np.int32], mantissa: NDArray[np.uint32], shift: NDArray[np.uint8]) -> NDArray[np.int64]:
    """The products with the scales, rounded once, ties to even: 32 bits times 24 bits, and a half, fit 64."""
    product = sums.astype(np.int64) * mantissa.astype(np.int64)[:, None]
    by = shift.astype(np.int64)[:, None]
    half = (np.int64(1) << np.maximum(by - 1, 0)) * (by > 0)
    # Ties to even: the half, less one where the quotient is even.
    rounded: NDArray[np.int64] = (product + half - (1 - (product >> by & 1)) * (by > 0)) >> by
    return rounded
