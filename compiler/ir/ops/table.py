"""A table look-up."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from intloom.compiler.ir.arithmetic import through
from intloom.compiler.ir.node import Context, Node, operator
from intloom.compiler.ir.onnx_writer import Writer
from intloom.compiler.ir.tensor import Image, Shape, Tensor


@operator
class Table(Node):
    """A function of one byte."""

    OPERANDS: ClassVar = 1

    table: bytes

    def result_shape(self, operands: Sequence[Tensor], described: Shape) -> Shape:
        """The operand's shape."""
        return operands[0].shape

    def evaluate(self, operands: Sequence[Image], context: Context) -> Image:
        """`table[x & 0xFF]`."""
        return through(self.table, operands[0])

    def export(self, w: Writer, tensors: Mapping[str, Tensor]) -> None:
        """Gather."""
        w.table(self.table, self.inputs[0], self.output)
