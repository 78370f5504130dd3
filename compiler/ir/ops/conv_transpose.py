"""Transposed convolution: every input pixel scatters a scaled kernel into the output."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from intloom.compiler.ir.node import Context, Pads, Pair, operator
from intloom.compiler.ir.onnx_writer import Writer
from intloom.compiler.ir.ops.conv import ArrayWeights, Conv, moving_conv
from intloom.compiler.ir.tensor import Image, Shape, Tensor


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
        return 0 if self.moves else x.height * x.width * int(self.weights.size)

    def evaluate(self, operands: Sequence[Image], context: Context) -> Image:
        """The convolution of the spread image."""
        channels, height, width = operands[0].shape
        (rows, columns), (top, left, bottom, right) = self.strides, self.borders
        spread = np.full((channels, height * rows, width * columns), self.zp_in, np.int8)
        spread[:, ::rows, ::columns] = operands[0]
        around = ((0, 0), (max(0, top), max(0, bottom)), (max(0, left), max(0, right)))
        padded = np.pad(spread, around, constant_values=self.zp_in)
        _, height, width = padded.shape
        cut = padded[:, max(0, -top) : height - max(0, -bottom), max(0, -left) : width - max(0, -right)]
        return self.plain(self.inputs[0]).evaluate([np.ascontiguousarray(cut)], context)

    def export(self, w: Writer, tensors: Mapping[str, Tensor]) -> None:
        """Pads between and around the pixels, and a convolution."""
        x, zero = tensors[self.inputs[0]], w.constant(self.zp_in, np.int8)
        self.plain(spread_pixels(w, x.name, x.shape, self.strides, self.borders, zero)).export(w, tensors)

    @property
    def borders(self) -> Pads:
        """See `spread_borders`."""
        return spread_borders(self.weights.shape[2:], self.strides, self.dilations, self.pads, self.output_padding)

    def plain(self, image: str) -> Conv:
        """The convolution of the spread image `image`, whose added pixels are `zp_in`."""
        bias = self.bias - self.zp_in * self.weights.sum(axis=(1, 2, 3), dtype=np.int64)
        return Conv(
            name=self.name,
            inputs=(image,),
            output=self.output,
            weights=np.ascontiguousarray(self.weights[:, :, ::-1, ::-1]),
            bias=bias.astype(np.int32),  # modulo 2**32
            mantissa=self.mantissa,
            shift=self.shift,
            zp_in=self.zp_in,
            zp_out=self.zp_out,
            dilations=self.dilations,
            group=self.group,
            table=self.table,
        )


def transposed(node: Conv, **changes: Any) -> ConvTranspose:
    """The transposed convolution with the constants of a convolution, except for some changes."""
    return ConvTranspose(**{f.name: getattr(node, f.name) for f in fields(node)} | changes)


def spreading_conv(name: str, x: Tensor, weights: ArrayWeights, group: int = 1) -> ConvTranspose:
    """Channels of `x` become pixels of blocks: weights [channel, channel of x, row, column] are 0 or 1."""
    # A transposed convolution subtracts the zero point from its input.
    moved = moving_conv(name, x, weights, strides=weights.shape[2:], group=group)
    return transposed(moved, bias=np.zeros(len(weights), np.int32))


def spread_borders(
    kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int], pads: Sequence[int], extra: Sequence[int]
) -> Pads:
    """Rows and columns around the spread image, in which each row and column has `stride - 1` more after it.

    Negative where the image is cut.
    """
    reach = [d * (k - 1) for d, k in zip(dilations, kernel, strict=True)]
    bottom, right = (reach[i] - pads[2 + i] + extra[i] - (strides[i] - 1) for i in (0, 1))
    return (reach[0] - pads[0], reach[1] - pads[1], bottom, right)


def spread_pixels(w: Writer, image: str, shape: Sequence[int], strides: Sequence[int], borders: Pads, zero: str) -> str:
    """Write the spread image with its borders, where all added pixels are `zero`."""
    _, channels, height, width = shape
    (rows, columns), (top, left, bottom, right) = strides, borders
    apart = w.reshaped(image, (1, channels, height, 1, width, 1))
    between = w.op("Pad", (apart, w.constant([0] * 9 + [rows - 1, 0, columns - 1], np.int64), zero))
    joined = w.reshaped(between, (1, channels, height * rows, width * columns))
    return w.op("Pad", (joined, w.constant([0, 0, top, left, 0, 0, bottom, right], np.int64), zero))
