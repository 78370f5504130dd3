"""Transposed convolution: every input pixel scatters a scaled kernel into the output."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from intloom.common.errors import UnsupportedError
from intloom.compiler.ir.arithmetic import through
from intloom.compiler.ir.node import Context, Pair, operator
from intloom.compiler.ir.onnx_writer import Writer
from intloom.compiler.ir.ops.conv import Conv
from intloom.compiler.ir.tensor import Image, Shape, Tensor
from intloom.hw.spec.arith import FP32_SIGNIFICAND_BITS

_PART = 16


@operator
class ConvTranspose(Conv):
    """Transposed convolution: input pixel (i, j) adds `(x - zp_in) * w[ky, kx]` at output (i*s + ky*d - pad).

    Outputs see different taps, so unlike in `Conv` the zero point is not folded into `bias`: code that splits the node
    by taps subtracts `zp_in * sum(w)` of each part's taps, and feeds `zp_in` outside the image.
    """

    output_padding: Pair = (0, 0)

    def result_shape(self, operands: Sequence[Tensor], described: Shape) -> Shape:
        """Every pixel that an input pixel reaches."""
        (x,) = operands
        self.check_constants(x)
        sizes = []
        for i, size in enumerate((x.height, x.width)):
            span = self.dilations[i] * (self.weights.shape[2 + i] - 1) + 1
            sizes.append((size - 1) * self.strides[i] + span - self.pads[i] - self.pads[i + 2] + self.output_padding[i])
        return (1, len(self.weights), sizes[0], sizes[1])

    def macs(self, tensors: Mapping[str, Tensor]) -> int:
        """Each input pixel times the whole kernel."""
        x = tensors[self.inputs[0]]
        return x.height * x.width * int(self.weights.size)

    def evaluate(self, operands: Sequence[Image], context: Context) -> Image:
        """Scattered sums, then bias, requantization and table."""
        height, width = context.tensors[self.output].shape[2:]
        sums = _scattered_sums(self, operands[0], (height, width)).astype(np.int32)
        return through(self.table, self.requantized(sums, slice(None), context))

    def export(self, w: Writer, tensors: Mapping[str, Tensor]) -> None:
        """Float ConvTranspose whose sums fp32 holds: one of the weights' high parts, one of their low parts.

        Raises
        ------
        UnsupportedError
            So many products are summed up that fp32 does not hold them.
        """
        weights = self.weights.astype(np.int32)
        low = weights & (_PART - 1)
        x = w.op("Sub", (w.op("Cast", (self.inputs[0],), to=1), w.constant(self.zp_in, np.float32)))
        window = {**self.window, "output_padding": self.output_padding}
        parts = []
        for part, factor in ((low, 1), ((weights - low) // _PART, _PART)):
            reach = int(np.abs(part).reshape(len(part), -1).sum(axis=1).max()) * 255
            if reach > 1 << FP32_SIGNIFICAND_BITS:
                raise UnsupportedError(f"node {self.name!r}: ONNX's float ConvTranspose does not hold its sums")
            sums = w.op("ConvTranspose", (x, w.constant(_input_first(part, self.group), np.float32)), **window)
            parts.append(w.op("Mul", (w.op("Cast", (sums,), to=6), w.constant(factor, np.int32))))
        total = self.requantized_onnx(w, w.op("Add", (parts[0], parts[1])), self.bias)
        w.table(self.table, total, self.output)


def transposed(node: Conv, **changes: Any) -> ConvTranspose:
    """The transposed convolution with the constants of a convolution, except for some changes."""
    return ConvTranspose(**{f.name: getattr(node, f.name) for f in fields(node)} | changes)


def _scattered_sums(node: ConvTranspose, x: Image, wanted: Pair) -> NDArray[np.int64]:
    """The sums of products (channels, rows, columns) of an output of `wanted` rows and columns."""
    weights = node.weights.astype(np.int64)
    out_channels, _, kernel_h, kernel_w = weights.shape
    (stride_h, stride_w), (dilation_h, dilation_w) = node.strides, node.dilations
    top, left, _, _ = node.pads
    # Large enough for every tap of every pixel; `pads` then crops the result, and `output_padding` may extend it.
    spread = (
        max(wanted[0] + top, (x.shape[1] - 1) * stride_h + dilation_h * (kernel_h - 1) + 1),
        max(wanted[1] + left, (x.shape[2] - 1) * stride_w + dilation_w * (kernel_w - 1) + 1),
    )
    sums = np.zeros((out_channels, *spread), dtype=np.int64)
    for ky in range(kernel_h):
        for kx in range(kernel_w):
            y, x0 = ky * dilation_h, kx * dilation_w
            rows = slice(y, y + (x.shape[1] - 1) * stride_h + 1, stride_h)
            columns = slice(x0, x0 + (x.shape[2] - 1) * stride_w + 1, stride_w)
            sums[:, rows, columns] += _tap_products(node, weights[:, :, ky, kx], x)
    return sums[:, top : top + wanted[0], left : left + wanted[1]]


def _tap_products(node: ConvTranspose, weights: NDArray[np.int64], x: Image) -> NDArray[np.int64]:
    """What one tap of the kernel makes of every input pixel, for all output channels."""
    each, per_group = weights.shape[0] // node.group, weights.shape[1]
    # float64 holds every sum of byte products that an int32 accumulator holds.
    groups = weights.reshape(node.group, each, per_group).astype(np.float64)
    # The zero point is subtracted here: outputs have different numbers of taps, so no bias can contain it.
    pixels = x.reshape(node.group, per_group, -1).astype(np.float64) - node.zp_in
    return (groups @ pixels).astype(np.int64).reshape(weights.shape[0], *x.shape[1:])


def _input_first(weights: NDArray[np.int32], group: int) -> NDArray[np.int32]:
    """From [out, in/group, …] to ONNX's [in, out/group, …]."""
    outputs, each, rows, columns = weights.shape
    grouped = weights.reshape(group, outputs // group, each, rows, columns).swapaxes(1, 2)
    return np.ascontiguousarray(grouped).reshape(group * each, outputs // group, rows, columns)
