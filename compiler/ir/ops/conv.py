"""Convolution."""

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.ir.arithmetic import exact_product, requantize, through
from intloom.compiler.ir.node import Context, Node, Pads, Pair, operator
from intloom.compiler.ir.onnx_writer import Writer
from intloom.compiler.ir.tensor import Image, Shape, Tensor
from intloom.hw.spec.arith import FP32_SIGNIFICAND_BITS, INT8_MAX, INT8_MIN, MAX_SHIFT, scale_from_float

ArrayWeights = NDArray[np.signedinteger[Any]]
"""int8 or int16."""
MOST_SPAN = INT8_MAX - INT8_MIN
"""The largest difference of two weights of a channel, or of a weight and 0: all are int8 minus one int8 zero point."""
_COLUMN_VALUES = 1 << 21
"""Values of the unfolded input made at a time: about what a processor's cache holds."""


def weight_spans(weights: NDArray[Any]) -> NDArray[np.int64]:
    """For each output channel, the largest difference of two of its weights and 0."""
    flat = weights.reshape(len(weights), -1)
    high, low = (ends(axis=1, initial=0).astype(np.int64) for ends in (flat.max, flat.min))
    spans: NDArray[np.int64] = high - low
    return spans


@operator
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
    moves: bool = False
    """It moves bytes: its products are none of the model's."""

    def result_shape(self, operands: Sequence[Tensor], described: Shape) -> Shape:
        """One pixel per kernel position."""
        (x,) = operands
        self.check_constants(x)
        sizes = []
        for i, size in enumerate((x.height, x.width)):
            span = self.dilations[i] * (self.weights.shape[2 + i] - 1) + 1
            sizes.append((size + self.pads[i] + self.pads[i + 2] - span) // self.strides[i] + 1)
        return (1, len(self.weights), sizes[0], sizes[1])

    def macs(self, tensors: Mapping[str, Tensor]) -> int:
        """Each output pixel times the whole kernel."""
        return 0 if self.moves else tensors[self.output].height * tensors[self.output].width * int(self.weights.size)

    def evaluate(self, operands: Sequence[Image], context: Context) -> Image:
        """Exact integer sums through the matrix product of a float type that holds them, then requantization."""
        out = np.empty(context.tensors[self.output].shape[1:], dtype=np.int8)
        for channels, rows, sums in conv_sums(self, operands[0]):
            out[channels, rows] = self.requantized(sums, channels, context)
        return through(self.table, out)

    def requantized(self, sums: NDArray[np.int32], channels: slice, context: Context) -> Image:
        """The result bytes of sums (channels, rows, columns) of some channels, before the table."""
        # In 32 bits, which wrap like the accumulators.
        total = (sums + self.bias[channels, None, None]).reshape(len(sums), -1)
        scales = self.mantissa[channels], self.shift[channels]
        return requantize(total, *scales, self.zp_out, context.match).reshape(sums.shape)

    def export(self, w: Writer, tensors: Mapping[str, Tensor]) -> None:
        """One QLinearConv; weights of nine bits as the sum of several ConvInteger."""
        # ONNX's operators subtract the zero point themselves, so what folding put into the bias comes out again.
        bias = self.bias + self.zp_in * self.weights.reshape(len(self.bias), -1).sum(axis=1, dtype=np.int32)
        zero = w.constant(self.zp_in, np.int8)
        if self.weights.dtype == np.int8:
            one, scale, zeros = w.constant(1, np.float32), w.constant(self.scales, np.float32), np.zeros(len(bias))
            operands = (self.inputs[0], one, zero, w.constant(self.weights, np.int8), scale, w.constant(zeros, np.int8))
            constants = (one, w.constant(self.zp_out, np.int8), w.constant(bias, np.int32))
            value = w.op("QLinearConv", operands + constants, **self.window)
        else:
            parts = (w.constant(part, np.int8) for part in _int8_parts(self.weights))
            sums = [w.op("ConvInteger", (self.inputs[0], part, zero), **self.window) for part in parts]
            value = self.requantized_onnx(w, reduce(lambda a, b: w.op("Add", (a, b)), sums), bias)
        w.table(self.table, value, self.output)

    def requantized_onnx(self, w: Writer, sums: str, bias: NDArray[np.int32]) -> str:
        """`clamp(zp_out + round((sums + bias) * scale))` of int32 sums, in fp32 as mode `ort` defines it."""
        form = (1, len(bias), 1, 1)
        total = w.op("Add", (sums, w.constant(bias.reshape(form), np.int32)))
        real = w.op("Mul", (w.op("Cast", (total,), to=1), w.constant(self.scales.reshape(form), np.float32)))
        moved = w.op("Add", (w.op("Round", (real,)), w.constant(self.zp_out, np.float32)))
        limits = (w.constant(v, np.float32) for v in (INT8_MIN, INT8_MAX))
        return w.op("Cast", (w.op("Clip", (moved, *limits)),), to=3)

    @property
    def scales(self) -> NDArray[np.float32]:
        """The scale of each channel."""
        return np.ldexp(self.mantissa.astype(np.float64), -self.shift.astype(np.int64)).astype(np.float32)

    @property
    def window(self) -> dict[str, Any]:
        """ONNX's attributes of the window."""
        sizes = {"kernel_shape": self.weights.shape[2:], "pads": self.pads, "strides": self.strides}
        return {**sizes, "dilations": self.dilations, "group": self.group}

    def check_constants(self, x: Tensor) -> None:
        """Check what does not depend on the geometry of the result."""
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


def moving_conv(name: str, x: Tensor, weights: ArrayWeights, **window: Any) -> Conv:
    """A convolution that moves bytes of `x`: of each output channel one weight is 1, and all others are 0."""
    count, one = len(weights), scale_from_float(1.0)
    return Conv(
        name=name,
        inputs=(x.name,),
        output=name,
        weights=weights,
        # The sum is the byte itself, and the zero point is added after the scale of 1.
        bias=np.full(count, -x.zero_point, np.int32),
        mantissa=np.full(count, one.mantissa, np.uint32),
        shift=np.full(count, one.shift, np.uint8),
        zp_in=x.zero_point,
        zp_out=x.zero_point,
        moves=True,
        **window,
    )


def conv_sums(node: Conv, x: Image) -> Iterator[tuple[slice, slice, NDArray[np.int32]]]:
    """The sums of products, in pieces: which channels, which rows, and the sums (channels, rows, columns)."""
    top, left, bottom, right = node.pads
    padded = np.pad(x, ((0, 0), (top, bottom), (left, right)), constant_values=node.zp_in) if any(node.pads) else x
    weights = node.weights.astype(np.int32)
    out_channels, per_group, kernel_h, kernel_w = weights.shape
    rows = (padded.shape[1] - node.dilations[0] * (kernel_h - 1) - 1) // node.strides[0] + 1
    columns = (padded.shape[2] - node.dilations[1] * (kernel_w - 1) - 1) // node.strides[1] + 1
    each = out_channels // node.group
    # A matrix product per channel would have a single row, so shifted products are used.
    if per_group == 1 and each == 1:
        yield slice(None), slice(None), _depthwise(node, padded, weights, rows, columns)
        return
    for g in range(node.group):
        channels = slice(g * each, (g + 1) * each)
        windows = _windows(node, padded[g * per_group : (g + 1) * per_group], rows, columns)
        matrix = weights[channels].reshape(each, -1)
        for first, last in _strips(rows, columns * matrix.shape[1]):
            sums = _product(matrix, windows[..., first:last, :].reshape(matrix.shape[1], -1))
            yield channels, slice(first, last), sums.reshape(each, last - first, columns)


def _windows(node: Conv, x: Image, rows: int, columns: int) -> Image:
    """A view (channels, kernel rows, kernel columns, rows, columns) of the input under each tap of the kernel."""
    plane, row, column = x.strides
    (stride_h, stride_w), (dilation_h, dilation_w) = node.strides, node.dilations
    return np.lib.stride_tricks.as_strided(
        x,
        (x.shape[0], *node.weights.shape[2:], rows, columns),
        (plane, row * dilation_h, column * dilation_w, row * stride_h, column * stride_w),
        writeable=False,
    )


def _strips(rows: int, values_a_row: int) -> Iterator[tuple[int, int]]:
    step = max(1, _COLUMN_VALUES // max(1, values_a_row))
    for first in range(0, rows, step):
        yield first, min(rows, first + step)


def _product(weights: NDArray[np.int32], columns: Image) -> NDArray[np.int32]:
    """Sums of products: [channel, pixel]."""
    reach = int(np.abs(weights).sum(axis=1, dtype=np.int64).max()) * -INT8_MIN
    return exact_product(weights, columns, reach)


def _depthwise(node: Conv, x: Image, weights: NDArray[np.int32], rows: int, columns: int) -> NDArray[np.int32]:
    """One kernel per channel: shifted products, in plain integers."""
    sums = np.zeros((weights.shape[0], rows, columns), dtype=np.int32)
    for ky in range(weights.shape[2]):
        for kx in range(weights.shape[3]):
            y, x0 = ky * node.dilations[0], kx * node.dilations[1]
            part = x[:, y : y + (rows - 1) * node.strides[0] + 1 : node.strides[0], :]
            part = part[:, :, x0 : x0 + (columns - 1) * node.strides[1] + 1 : node.strides[1]]
            sums += part * weights[:, 0, ky, kx][:, None, None]
    return sums


def _int8_parts(weights: NDArray[Any]) -> Iterator[NDArray[np.int8]]:
    """Summands of the weights: onnxruntime's ConvInteger has no zero point for each channel."""
    rest = weights.astype(np.int32)
    while rest.any():
        part = np.clip(rest, INT8_MIN, INT8_MAX)
        yield part.astype(np.int8)
        rest = rest - part
