"""Integer arithmetic of the instruction simulator.

It shares no function with the golden model, whose sums of products and requantization use floating point: an error in
one of them shows as a difference.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from intloom.hw.spec.arith import FP32_SIGNIFICAND_BITS, INT8_MAX, INT8_MIN, Affine, RoundingMode
from intloom.hw.spec.norm import (
    BETA_FRACTION,
    MANTISSA_BITS,
    RESULT_SHIFT,
    ROOT_SHIFT,
    VALUE_BITS,
    VALUE_SHIFT,
    VARIANCE_SHIFT,
    reciprocal_root,
)
from intloom.hw.spec.softmax import LARGEST_TOTAL

Int64 = NDArray[np.int64]
Words16 = NDArray[np.int16]
_POWERS_OF_4 = 4 ** np.arange(1, 23, dtype=np.int64)


def product(values: NDArray[np.integer], matrix: NDArray[np.integer]) -> NDArray[np.int32]:
    """`values @ matrix` in 32 bits, which wrap."""
    # Several times as fast as `@`, which has no vector instructions for integers.
    transposed = np.ascontiguousarray(matrix.T, np.int32)
    sums: NDArray[np.int32] = np.einsum("pk,ck->pc", values.astype(np.int32), transposed)
    return sums


def requantize(
    sums: NDArray[np.int32],
    mantissa: NDArray[np.uint32],
    shift: NDArray[np.uint8],
    zero_point: int,
    match: RoundingMode,
) -> NDArray[np.int8]:
    """`clamp(zero_point + round(sum * mantissa * 2**-shift))` of sums [pixel, channel]."""
    magnitude = np.abs(sums.astype(np.int64))
    if match is RoundingMode.ORT:
        # fp32 rounds the sum, and the product once more.
        scaled = _significant(_significant(magnitude) * mantissa.astype(np.int64))
    else:
        scaled = magnitude * mantissa.astype(np.int64)
    # A scaled sum has at most 56 bits, so longer shifts give 0 too; int64 has none beyond 63.
    rounded = _shifted(scaled, np.minimum(shift, 62).astype(np.int64), even=True)
    return _saturated(np.where(sums < 0, -rounded, rounded) + zero_point)


def affine(x1: Int64, x2: Int64 | int, k: Affine) -> NDArray[np.int8]:
    """`clamp((x1*m1 + x2*m2 + c) * 2**-shift)`."""
    return _saturated(_shifted(x1 * k.m1 + x2 * k.m2 + k.c, np.int64(k.shift), even=k.even))


def softmax(values: NDArray[np.int8], exponentials: Int64, less: int, zp_out: int, channels: int) -> NDArray[np.int8]:
    """The Softmax of each row; bytes from `channels` on count as exponentials of 0."""
    largest = values[:, :channels].max(axis=1, keepdims=True).astype(np.int64)
    distance = np.maximum(largest - values, 0)
    terms = np.where(np.arange(values.shape[1]) < channels, exponentials[255 - distance], 0)
    total = np.minimum(terms.sum(axis=1, keepdims=True), LARGEST_TOTAL)
    # A sum of 0 gives the largest result.
    quotient = np.where(total > 0, (terms * (256 - less) + total // 2) // np.where(total > 0, total, 1), 256)
    return _saturated(quotient + zp_out)


class NormSums(NamedTuple):
    """What a normalization makes of a pixel's bytes."""

    channels: int
    center: bool
    zp_in: int
    epsilon: int


def norm(values: NDArray[np.int8], gamma: Words16, beta: Words16, sums: NormSums) -> NDArray[np.int8]:
    """The normalization of each row; bytes beyond the channels count as the zero point."""
    counted = np.arange(values.shape[1]) < sums.channels
    d = np.where(counted, values.astype(np.int64) - sums.zp_in, 0)
    total = d.sum(axis=1) if sums.center else np.zeros(len(d), np.int64)
    variance = sums.channels * np.square(d).sum(axis=1) - np.square(total)
    w = (variance << VARIANCE_SHIFT) + sums.epsilon
    t = np.searchsorted(_POWERS_OF_4, w, side="right")
    root = np.array([reciprocal_root(int(m)) for m in (w << MANTISSA_BITS - 2) >> 2 * t], np.int64)
    factor, offset = (np.where(variance == 0, 0, (n * root << ROOT_SHIFT) >> t) for n in (sums.channels, total))
    scaled = (d * factor[:, None] - offset[:, None]) >> VALUE_SHIFT
    half = 1 << VALUE_BITS - 1
    scaled = ((scaled + half) & (2 * half - 1)) - half
    lifted = beta.astype(np.int64) << RESULT_SHIFT - BETA_FRACTION
    return _saturated((scaled * gamma.astype(np.int64) + lifted) >> RESULT_SHIFT)


def _shifted(value: Int64, shift: Int64 | np.int64, *, even: bool) -> Int64:
    """`value * 2**-shift`, rounded to nearest: ties to even or up."""
    quotient = value >> shift
    remainder = value - (quotient << shift)
    half = np.int64(1) << np.maximum(shift - 1, 0)
    rounds_up = remainder + (quotient & 1) > half if even else remainder >= half
    return quotient + (rounds_up & (shift > 0))


def _significant(magnitude: Int64) -> Int64:
    """Integers from 0 on rounded to the significant bits of fp32, ties to even."""
    excess, rest = np.zeros_like(magnitude), magnitude >> FP32_SIGNIFICAND_BITS
    # Most sums of a network are exact.
    if not rest.any():
        return magnitude
    # The number of bits in `rest`, at most 32, by halves.
    for bits in (16, 8, 4, 2, 1):
        large = rest >> bits > 0
        excess += bits * large
        rest = np.where(large, rest >> bits, rest)
    excess += rest
    return _shifted(magnitude, excess, even=True) << excess


def _saturated(values: Int64) -> NDArray[np.int8]:
    return np.clip(values, INT8_MIN, INT8_MAX).astype(np.int8)
