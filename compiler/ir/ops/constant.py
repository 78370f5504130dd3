"""A constant tensor."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.ir.node import Context, Node, operator
from intloom.compiler.ir.onnx_writer import Writer
from intloom.compiler.ir.tensor import Image, Shape, Tensor


@operator
class Constant(Node):
    """A tensor whose values are part of the program."""

    OPERANDS: ClassVar = 0

    values: NDArray[np.int8]
    """[channels, height, width]."""

    def result_shape(self, operands: Sequence[Tensor], described: Shape) -> Shape:
        """The shape of the values."""
        sound = self.values.dtype == np.int8 and self.values.ndim == 3
        self.require(sound, "its values must be int8 of rank 3", (self.values.dtype, self.values.shape))
        channels, height, width = self.values.shape
        return (1, channels, height, width)

    def evaluate(self, operands: Sequence[Image], context: Context) -> Image:
        """Its values."""
        return self.values

    def export(self, w: Writer, tensors: Mapping[str, Tensor]) -> None:
        """A stored tensor."""
        w.op("Identity", (w.constant(self.values[None], np.int8),), self.output)
