"""Maximum of windows."""

from collections.abc import Mapping, Sequence

import numpy as np

from intloom.compiler.ir.node import Context, Pads, Pair, operator
from intloom.compiler.ir.onnx_writer import Writer
from intloom.compiler.ir.tensor import Image, Tensor
from intloom.compiler.ir.window import Pool, shifted
from intloom.hw.spec.arith import INT8_MIN


@operator
class MaxPool(Pool):
    """Largest value of each window; padding does not count."""

    def evaluate(self, operands: Sequence[Image], context: Context) -> Image:
        """Rows first, then columns: a maximum is separable."""
        (kernel_h, kernel_w), (stride_h, stride_w) = self.kernel, self.strides
        top, left, bottom, right = self.pads
        rows = _largest(operands[0], (kernel_h, 1), (stride_h, 1), (top, 0, bottom, 0))
        return _largest(rows, (1, kernel_w), (1, stride_w), (0, left, 0, right))

    def export(self, w: Writer, tensors: Mapping[str, Tensor]) -> None:
        """MaxPool."""
        w.op("MaxPool", self.inputs, self.output, kernel_shape=self.kernel, strides=self.strides, pads=self.pads)


def _largest(x: Image, kernel: Pair, strides: Pair, pads: Pads) -> Image:
    parts = shifted(x, kernel, strides, pads, INT8_MIN)
    best = next(parts).copy()
    for part in parts:
        np.maximum(best, part, out=best)
    return best
