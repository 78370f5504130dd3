"""The integers of an average or of a sum: the exact sum of a window, requantized once.

With n pixels in a window, a result is `requantize(sum - n * zero point)` with the factor
`input scale / (result scale * n)` in fp32. This is onnxruntime's kernel for quantized averages of whole images. For
other averages it has only float kernels, whose results depend on the order of summation: they dequantize n bytes, add
them, divide by n, and divide by the result scale. With u = 2^-24, each of the n values passes at most n + 3 roundings
there, and the factor, the sum and the product here have 4. Before they are rounded to bytes, the two results therefore
differ by at most `g * largest |byte - zero point| * input scale / result scale` with k = n + 8 and
`g = k * u / (1 - k * u)`. They are equal where no sum is that close to a rounding tie.
"""

import math

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.fold.arithmetic.weights import requantizer_scale
from intloom.compiler.ir import Tensor
from intloom.compiler.ir.arithmetic import requantize
from intloom.hw.spec.arith import INT8_MAX, INT8_MIN, RoundingMode, Scale

_ROUNDING = 2.0**-24
_OTHER_ROUNDINGS = 8


def average_scale(x: Tensor, result: Tensor, count: int) -> Scale:
    """The factor of a sum that is divided by `count`."""
    return requantizer_scale(average_factor(x.scale, result.scale, count))


def average_factor(x_scale: float, result_scale: float, count: int) -> float:
    """The factor of a sum that is divided by `count`, in fp32."""
    with np.errstate(all="ignore"):
        return float(np.float32(x_scale) / (np.float32(result_scale) * np.float32(count)))


def divisor(op: str, count: int) -> int:
    """By what an operator divides the sum of `count` values."""
    return 1 if op == "ReduceSum" else count


def averages(sums: NDArray[np.int64], x: Tensor, result: Tensor, count: int, match: RoundingMode) -> NDArray[np.int64]:
    """The result for each sum of differences from the zero point, divided by `count`."""
    scale, centered = average_scale(x, result, count), sums.astype(np.int32)
    scales = np.array([scale.mantissa], np.uint32), np.array([scale.shift], np.uint8)
    made: NDArray[np.int64] = requantize(centered[None], *scales, result.zero_point, match)[0].astype(np.int64)
    return made


def float_distance(x: Tensor, result: Tensor, count: int) -> int:
    """Upper bound of the difference from the result of onnxruntime's float kernels; 0 where it is always equal."""
    ratio = x.scale / result.scale
    reach = max(x.zero_point - INT8_MIN, INT8_MAX - x.zero_point)
    relative = (count + _OTHER_ROUNDINGS) * _ROUNDING
    error = relative / (1 - relative) * reach * ratio
    # All sums next to the ties between two results.
    ties = np.arange(INT8_MIN, INT8_MAX) + 0.5 - result.zero_point
    lower = np.floor(ties * count / ratio)
    near = np.clip([lower, lower + 1], (INT8_MIN - x.zero_point) * count, (INT8_MAX - x.zero_point) * count)
    if (np.abs(near * (ratio / count) - ties) > error * (1 + _ROUNDING)).all():
        return 0
    return min(math.floor(error) + 1, INT8_MAX - INT8_MIN)
