"""Concatenation along channels."""

from collections.abc import Mapping, Sequence

import numpy as np

from intloom.compiler.ir.node import Context, Node, operator
from intloom.compiler.ir.onnx_writer import Writer
from intloom.compiler.ir.tensor import Image, Shape, Tensor


@operator
class Concat(Node):
    """Concatenation along channels of tensors with the same scale and zero point."""

    def result_shape(self, operands: Sequence[Tensor], described: Shape) -> Shape:
        """The operands' height and width, and all their channels."""
        self.require(len(operands) > 0, "it must have operands", 0)
        first = operands[0]
        for x in operands:
            self.require(x.shape[2:] == first.shape[2:], "operands must have one height and width", x.shape)
        return (1, sum(x.channels for x in operands), first.height, first.width)

    def evaluate(self, operands: Sequence[Image], context: Context) -> Image:
        """The operands' channels, one after the other."""
        return np.concatenate(list(operands), axis=0)

    def export(self, w: Writer, tensors: Mapping[str, Tensor]) -> None:
        """Concat of channels."""
        w.op("Concat", self.inputs, self.output, axis=1)
