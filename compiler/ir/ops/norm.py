"""Layer and RMS normalization over channels."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.ir.node import Context, Node, operator
from intloom.compiler.ir.onnx_writer import Writer
from intloom.compiler.ir.tensor import Image, Shape, Tensor
from intloom.hw.spec.arith import INT8_MAX, INT8_MIN
from intloom.hw.spec.norm import (
    BETA_FRACTION,
    EPSILON_BITS,
    LARGEST_COUNT,
    MANTISSA_BITS,
    RESULT_SHIFT,
    ROOT_SHIFT,
    SEGMENTS,
    VALUE_SHIFT,
    VARIANCE_SHIFT,
)

_STARTS, _FALLS = (np.array(column, np.int64) for column in zip(*SEGMENTS, strict=True))
_SEGMENT = (1 << MANTISSA_BITS) // len(SEGMENTS)
_LIFT = 50
"""2 to this power makes every number positive, so that division rounds down."""


@operator
class Norm(Node):
    """Deviation from the mean, or from 0 without `center`, over the root of the variance, for each pixel over channels.

    `intloom.hw.spec.norm` defines the integers.
    """

    OPERANDS: ClassVar = 1

    gamma: NDArray[np.int16]
    beta: NDArray[np.int16]
    center: bool
    zp_in: int
    epsilon: int

    def result_shape(self, operands: Sequence[Tensor], described: Shape) -> Shape:
        """The operand's shape."""
        (x,) = operands
        for name in ("gamma", "beta"):
            array = getattr(self, name)
            sound = array.dtype == np.int16 and array.shape == (x.channels,)
            self.require(sound, f"{name} must be an int16 for each channel", (array.dtype, array.shape))
        self.require(x.channels <= LARGEST_COUNT, f"channels must be at most {LARGEST_COUNT}", x.channels)
        self.require(0 <= self.epsilon < 1 << EPSILON_BITS, f"epsilon must fit {EPSILON_BITS} bits", self.epsilon)
        self.require(self.zp_in == x.zero_point, "zp_in must be the input's zero point", (self.zp_in, x.zero_point))
        return x.shape

    def evaluate(self, operands: Sequence[Image], context: Context) -> Image:
        """Sums of each pixel, its factor and offset, and results."""
        d = operands[0].astype(np.int64) - self.zp_in
        count, total, squares = len(d), d.sum(axis=0) * self.center, (d * d).sum(axis=0)
        variance = count * squares - total * total
        w = (variance << VARIANCE_SHIFT) + self.epsilon
        # All numbers are exact in float64, whose exponent is the number of bits.
        t = np.maximum(np.frexp(w.astype(np.float64))[1] - 1, 0).astype(np.int64) // 2
        segment, offset = np.divmod((w << MANTISSA_BITS - 2) >> 2 * t, _SEGMENT)
        root = (_STARTS[segment] - offset * _FALLS[segment] // _SEGMENT) * (variance > 0)
        a, b = ((n * root << ROOT_SHIFT) >> t for n in (count, total))
        z = (d * a - b) >> VALUE_SHIFT
        beta = self.beta.astype(np.int64) << RESULT_SHIFT - BETA_FRACTION
        result: Image = np.clip(
            (z * self.gamma.astype(np.int64)[:, None, None] + beta[:, None, None]) >> RESULT_SHIFT, INT8_MIN, INT8_MAX
        ).astype(np.int8)
        return result

    def export(self, w: Writer, tensors: Mapping[str, Tensor]) -> None:
        """The definition in int64."""
        deviations = w.math("Sub", w.widened(self.inputs[0]), self.zp_in)
        w.op("Cast", (norm_results(w, deviations, self, axis=1, rank=4, zero=0),), self.output, to=3)


def norm_results(w: Writer, deviations: str, node: Norm, axis: int, rank: int, zero: int) -> str:
    """Write results plus `zero`, in int64; `deviations` has so many axes, of which `axis` is channels."""
    along = [-1 if k == axis else 1 for k in range(rank)]
    count, math = len(node.gamma), w.math

    def gather(table: Sequence[int] | NDArray[np.int64], index: str) -> str:
        return w.op("Gather", (w.constant(table, np.int64), index))

    def divided(value: str, shift: int) -> str:
        """A value of any sign shifted right."""
        return math("Sub", math("Div", math("Add", value, 1 << _LIFT), 1 << shift), 1 << _LIFT - shift)

    total = w.reduced("ReduceSum", deviations, (axis,))
    if not node.center:
        total = math("Mul", total, 0)
    squares = w.reduced("ReduceSum", math("Mul", deviations, deviations), (axis,))
    variance = math("Sub", math("Mul", squares, count), math("Mul", total, total))
    lifted_variance = math("Add", math("Mul", variance, 1 << VARIANCE_SHIFT), node.epsilon)
    # Powers of 4 along the axis that is reduced already: as many as W reaches are its number of digits less 1.
    powers = w.constant(np.array([4**k - 1 for k in range(1, 23)]).reshape(along), np.int64)
    t = w.reduced("ReduceSum", w.widened(math("Greater", lifted_variance, powers)), (axis,))
    mantissa = math("Div", math("Mul", lifted_variance, 1 << MANTISSA_BITS - 2), gather([4**k for k in range(23)], t))
    segment = math("Div", mantissa, _SEGMENT)
    offset = math("Sub", mantissa, math("Mul", segment, _SEGMENT))
    fall = math("Div", math("Mul", offset, gather(_FALLS, segment)), _SEGMENT)
    some = w.widened(math("Greater", variance, 0))
    root = math("Mul", math("Sub", gather(_STARTS, segment), fall), math("Mul", some, 1 << ROOT_SHIFT))
    step, lifted = gather([1 << k for k in range(23)], t), gather([1 << _LIFT - k for k in range(23)], t)
    a = math("Div", math("Mul", root, count), step)
    b = math("Sub", math("Div", math("Add", math("Mul", root, total), 1 << _LIFT), step), lifted)
    z = divided(math("Sub", math("Mul", deviations, a), b), VALUE_SHIFT)
    gamma = w.constant(node.gamma.reshape(along), np.int64)
    beta = w.constant((node.beta.astype(np.int64) << RESULT_SHIFT - BETA_FRACTION).reshape(along), np.int64)
    y = divided(math("Add", math("Mul", z, gamma), beta), RESULT_SHIFT)
    return math("Add", math("Min", math("Max", y, INT8_MIN), INT8_MAX), zero)
