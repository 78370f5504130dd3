"""A range of channels."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from intloom.compiler.ir.node import Context, Node, operator
from intloom.compiler.ir.onnx_writer import Writer
from intloom.compiler.ir.tensor import Image, Shape, Tensor


@operator
class Slice(Node):
    """Channels `start` to `stop` (half-open)."""

    OPERANDS: ClassVar = 1

    start: int
    stop: int

    def result_shape(self, operands: Sequence[Tensor], described: Shape) -> Shape:
        """The operand's shape with `stop - start` channels."""
        (x,) = operands
        inside = 0 <= self.start < self.stop <= x.channels
        self.require(inside, f"its range must lie in 0..{x.channels}", (self.start, self.stop))
        return (1, self.stop - self.start, x.height, x.width)

    def evaluate(self, operands: Sequence[Image], context: Context) -> Image:
        """The channels."""
        return operands[0][self.start : self.stop]

    def export(self, w: Writer, tensors: Mapping[str, Tensor]) -> None:
        """Slice of channels."""
        bounds = (w.constant([v], np.int64) for v in (self.start, self.stop, 1))
        w.op("Slice", (self.inputs[0], *bounds), self.output)
