"""Convolution and transposed convolution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.ir.node import Node, Pads, Pair, operator
from intloom.compiler.ir.tensor import Shape, Tensor
from intloom.hw.spec.arith import FP32_SIGNIFICAND_BITS, INT8_MAX, INT8_MIN, MAX_SHIFT

ArrayWeights = NDArray[np.signedinteger[Any]]
"""int8 or int16."""
MOST_SPAN = INT8_MAX - INT8_MIN
"""The largest difference of two weights of a channel, or of a weight and 0: all are int8 minus one int8 zero point."""


def weight_spans(weights: NDArray[Any]) -> NDArray[np.int64]:
    """For each output channel, the largest difference of two of its weights and 0."""
    flat = weights.reshape(len(weights), -1)
    high, low = (ends(axis=1, initial=0).astype(np.int64) for ends in (flat.max, flat.min))
    spans: NDArray[np.int64] = high - low
    return spans


@operator
@dataclass(frozen=True, eq=False, kw_only=True)
class Conv(Node):
    """Convolution; also fully connected layers (1x1) and depthwise ones (group = channels).

    `y[m] = table[clamp(zp_out + round((bias[m] + sum of x*w) * mantissa[m] * 2**-shift[m]))]`. The
    input's zero point is folded into `bias`; padding feeds `zp_in`.
    """

    OPERANDS: ClassVar = 1

    weights: ArrayWeights
    """[out channels, in channels / group, kernel rows, kernel columns]; int16 where the zero point of the weights,
    which is subtracted from them, gives one a ninth bit."""
    bias: NDArray[np.int32]
    mantissa: NDArray[np.uint32]
    shift: NDArray[np.uint8]
    zp_in: int
    zp_out: int
    pads: Pads = (0, 0, 0, 0)
    strides: Pair = (1, 1)
    dilations: Pair = (1, 1)
    group: int = 1
    table: bytes | None = None

    def result_shape(self, operands: Sequence[Tensor], described: Shape) -> Shape:
        """One pixel per kernel position."""
        (x,) = operands
        self._check_constants(x)
        sizes = []
        for i, size in enumerate((x.height, x.width)):
            span = self.dilations[i] * (self.weights.shape[2 + i] - 1) + 1
            sizes.append((size + self.pads[i] + self.pads[i + 2] - span) // self.strides[i] + 1)
        return (1, len(self.weights), sizes[0], sizes[1])

    def macs(self, tensors: Mapping[str, Tensor]) -> int:
        """Each output pixel times the whole kernel."""
        return tensors[self.output].height * tensors[self.output].width * int(self.weights.size)

    def _check_constants(self, x: Tensor) -> None:
        shape, group = self.weights.shape, self.group
        sound = self.weights.dtype in (np.int8, np.int16) and len(shape) == 4
        self.require(sound, "weights must be int8 or int16 of rank 4", (self.weights.dtype, shape))
        span = int(weight_spans(self.weights).max(initial=0))
        self.require(span <= MOST_SPAN, f"weights of a channel and 0 must be at most {MOST_SPAN} apart", span)
        divides = group > 0 and shape[0] % group == 0
        self.require(divides, "groups must divide output channels", (group, shape[0]))
        covers = shape[1] * group == x.channels
        self.require(covers, "weights must cover the input's channels", (shape, x.channels))
        self._check_scales()
        self.require(self.zp_in == x.zero_point, "zp_in must be the input's zero point", (self.zp_in, x.zero_point))
        self.require(min(self.pads) >= 0, "padding must not be negative", self.pads)
        steps = (self.strides, self.dilations)
        self.require(min(*self.strides, *self.dilations) > 0, "strides and dilations must be positive", steps)

    def _check_scales(self) -> None:
        for name, kind in (("bias", np.int32), ("mantissa", np.uint32), ("shift", np.uint8)):
            array = getattr(self, name)
            sound = array.dtype == kind and array.shape == self.weights.shape[:1]
            self.require(sound, f"{name} must be one per channel", array.shape)
        mantissa, shift = int(self.mantissa.max()), int(self.shift.max())
        self.require(mantissa < 1 << FP32_SIGNIFICAND_BITS, "a mantissa must fit 24 bits", mantissa)
        self.require(shift <= MAX_SHIFT, f"a shift must be at most {MAX_SHIFT}", shift)


@operator
@dataclass(frozen=True, eq=False, kw_only=True)
class ConvTranspose(Conv):
    """Transposed convolution: input pixel (i, j) adds `(x - zp_in) * w[ky, kx]` at output (i*s + ky*d - pad).

    Outputs see different taps, so unlike in `Conv` the zero point is not folded into `bias`: code that splits the node
    by taps subtracts `zp_in * sum(w)` of each part's taps, and feeds `zp_in` outside the image.
    """

    output_padding: Pair = (0, 0)

    def result_shape(self, operands: Sequence[Tensor], described: Shape) -> Shape:
        """Every pixel that an input pixel reaches."""
        (x,) = operands
        self._check_constants(x)
        sizes = []
        for i, size in enumerate((x.height, x.width)):
            span = self.dilations[i] * (self.weights.shape[2 + i] - 1) + 1
            sizes.append((size - 1) * self.strides[i] + span - self.pads[i] - self.pads[i + 2] + self.output_padding[i])
        return (1, len(self.weights), sizes[0], sizes[1])

    def macs(self, tensors: Mapping[str, Tensor]) -> int:
        """Each input pixel times the whole kernel."""
        x = tensors[self.inputs[0]]
        return x.height * x.width * int(self.weights.size)
