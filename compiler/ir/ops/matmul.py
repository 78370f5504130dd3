"""Product of two tensors over their channels."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from intloom.compiler.ir.arithmetic import exact_product, requantize, through
from intloom.compiler.ir.node import Context, Node, operator
from intloom.compiler.ir.onnx_writer import Writer
from intloom.compiler.ir.ops.constant import Constant
from intloom.compiler.ir.ops.conv import Conv
from intloom.compiler.ir.ops.conv_transpose import ConvTranspose
from intloom.compiler.ir.tensor import Image, Shape, Tensor
from intloom.hw.spec.arith import FP32_SIGNIFICAND_BITS, INT8_MAX, INT8_MIN, LARGEST_DIFFERENCE, MAX_SHIFT


@operator
class MatMul(Node):
    """Scalar products of the pixels of two tensors: pixels of `a`, and one channel for each pixel of `b`.

    `y[n, p] = table[clamp(zp_out + round(sum over k of (a[k, p] - zp_a) * (b[k, n] - zp_b) * mantissa * 2**-shift))]`,
    where n and p count pixels in raster order. The array holds `b` as its weights while pixels of `a` pass.
    """

    OPERANDS: ClassVar = 2

    mantissa: int
    shift: int
    zp_a: int
    zp_b: int
    zp_out: int
    table: bytes | None = None
    moves: bool = False
    """One operand is an identity matrix: its products are none of the model's."""

    def result_shape(self, operands: Sequence[Tensor], described: Shape) -> Shape:
        """The pixels of `a`, with a channel for each pixel of `b`."""
        a, b = operands
        self.require(a.channels == b.channels, "operands must have one number of channels", (a.shape, b.shape))
        zero_points = (self.zp_a, self.zp_b)
        self.require(zero_points == (a.zero_point, b.zero_point), "zero points must be the operands'", zero_points)
        self.require(INT8_MIN <= self.zp_out <= INT8_MAX, "zp_out must be an int8", self.zp_out)
        self.require(0 <= self.mantissa < 1 << FP32_SIGNIFICAND_BITS, "its mantissa must fit 24 bits", self.mantissa)
        self.require(0 <= self.shift <= MAX_SHIFT, f"its shift must be at most {MAX_SHIFT}", self.shift)
        return (1, b.height * b.width, a.height, a.width)

    def macs(self, tensors: Mapping[str, Tensor]) -> int:
        """Each pair of pixels times their channels."""
        a, b = (tensors[name] for name in self.inputs)
        return 0 if self.moves else a.channels * a.height * a.width * b.height * b.width

    def evaluate(self, operands: Sequence[Image], context: Context) -> Image:
        """Exact sums of products, requantized."""
        zero_points = (self.zp_a, self.zp_b)
        a, b = (x.reshape(len(x), -1).astype(np.int32) - z for x, z in zip(operands, zero_points, strict=True))
        sums = exact_product(b.T, a, len(a) * LARGEST_DIFFERENCE**2)
        count = len(sums)
        scales = np.full(count, self.mantissa, np.uint32), np.full(count, self.shift, np.uint8)
        result = requantize(sums, *scales, self.zp_out, context.match)
        return through(self.table, result.reshape(count, *operands[0].shape[1:]))

    def export(self, w: Writer, tensors: Mapping[str, Tensor]) -> None:
        """One QLinearMatMul of matrices of pixels and channels."""
        a, b = (tensors[name] for name in self.inputs)
        pixels, columns = a.height * a.width, b.height * b.width
        moving = w.reshaped(self.inputs[0], (a.channels, pixels))
        stationary = w.reshaped(self.inputs[1], (b.channels, columns))
        one, scale = w.constant(1, np.float32), w.constant(np.ldexp(float(self.mantissa), -self.shift), np.float32)
        zero_a, zero_b, zero_out = (w.constant(z, np.int8) for z in (self.zp_a, self.zp_b, self.zp_out))
        transposed = w.op("Transpose", (stationary,), perm=(1, 0))
        product = w.op("QLinearMatMul", (transposed, scale, zero_b, moving, one, zero_a, one, zero_out))
        w.table(self.table, w.reshaped(product, (1, columns, a.height, a.width)), self.output)


def writes_blank_lanes(maker: Node | None, zero_point: int) -> bool:
    """Whether a node leaves the lanes beyond its last channel with the zero point, so that they add nothing to sums.

    Constants have zeros there. The array writes its zero point, since the weights are zero.
    """
    if isinstance(maker, Constant):
        return zero_point == 0
    # A transposed convolution corrects its bias for each phase.
    if isinstance(maker, Conv | MatMul) and not isinstance(maker, ConvTranspose):
        return maker.table is None and maker.zp_out == zero_point
    return False
