"""Nearest-neighbor enlargement."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from intloom.compiler.ir.node import Context, Node, Pair, operator
from intloom.compiler.ir.onnx_writer import Writer
from intloom.compiler.ir.tensor import Image, Shape, Tensor


@operator
class Resize(Node):
    """Nearest-neighbor enlargement by whole factors: output (y, x) takes input (y // factor_h, x // factor_w)."""

    OPERANDS: ClassVar = 1

    factors: Pair

    def result_shape(self, operands: Sequence[Tensor], described: Shape) -> Shape:
        """Height and width times the factors."""
        (x,) = operands
        self.require(min(self.factors) > 0, "its factors must be positive", self.factors)
        return (1, x.channels, x.height * self.factors[0], x.width * self.factors[1])

    def evaluate(self, operands: Sequence[Image], context: Context) -> Image:
        """Every pixel repeated."""
        return operands[0].repeat(self.factors[0], axis=1).repeat(self.factors[1], axis=2)

    def export(self, w: Writer, tensors: Mapping[str, Tensor]) -> None:
        """Nearest neighbor by integer factors."""
        scales = w.constant([1, 1, *self.factors], np.float32)
        modes = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        w.op("Resize", (self.inputs[0], "", scales), self.output, **modes)
