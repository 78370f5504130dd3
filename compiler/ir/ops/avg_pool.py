"""Average of windows."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from intloom.compiler.ir.arithmetic import affine, through
from intloom.compiler.ir.node import Context, operator
from intloom.compiler.ir.onnx_writer import Writer
from intloom.compiler.ir.tensor import Image, Shape, Tensor
from intloom.compiler.ir.window import Pool, shifted
from intloom.hw.spec.arith import Affine


@operator
class AvgPool(Pool):
    """`affine(sum of the window, 0)`, then the table; padding counts as `zp_in`."""

    affine: Affine
    zp_in: int
    table: bytes | None = None

    def result_shape(self, operands: Sequence[Tensor], described: Shape) -> Shape:
        """One pixel per window position."""
        self.check_affine(self.affine)
        return super().result_shape(operands, described)

    def evaluate(self, operands: Sequence[Image], context: Context) -> Image:
        """The window's sum, scaled."""
        parts = shifted(operands[0], self.kernel, self.strides, self.pads, self.zp_in)
        total = next(parts).astype(np.int64)
        for part in parts:
            total += part
        return through(self.table, affine(total, 0, self.affine))

    def export(self, w: Writer, tensors: Mapping[str, Tensor]) -> None:
        """Sums of windows, as a convolution with ones per channel, then the affine operation."""
        channels = tensors[self.inputs[0]].channels
        ones = w.constant(np.ones((channels, 1, *self.kernel)), np.int8)
        zero = w.constant(self.zp_in, np.int8)
        cut = w.constant(
            [0, 0, *(min(0, n) for n in self.pads[:2]), 0, 0, *(min(0, n) for n in self.pads[2:])], np.int64
        )
        image = w.op("Pad", (self.inputs[0], cut)) if min(self.pads) < 0 else self.inputs[0]
        window: dict[str, Any] = {
            "kernel_shape": self.kernel,
            "strides": self.strides,
            "pads": [max(0, n) for n in self.pads],
        }
        # ConvInteger sums `x - zp`, and what it pads with then counts as zero, as the graph's padding by zp_in does.
        sums = w.op("ConvInteger", (image, ones, zero), **window, group=channels)
        total = w.op("Add", (w.widened(sums), w.integer(self.kernel[0] * self.kernel[1] * self.zp_in)))
        scaled = w.math("Mul", total, self.affine.m1)
        w.table(self.table, w.affine(scaled, self.affine), self.output)
