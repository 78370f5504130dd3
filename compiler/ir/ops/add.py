"""Quantized addition."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.ir.arithmetic import affine
from intloom.compiler.ir.elementwise import Elementwise
from intloom.compiler.ir.node import operator
from intloom.compiler.ir.onnx_writer import Writer
from intloom.compiler.ir.tensor import Image, Shape, Tensor
from intloom.hw.spec.arith import Affine
from intloom.hw.spec.isa import Kind


@operator
class Add(Elementwise):
    """`affine(a, b)`, then the table."""

    affine: Affine

    def result_shape(self, operands: Sequence[Tensor], described: Shape) -> Shape:
        """The operands' shape; a pixel is broadcast."""
        self.check_affine(self.affine)
        return super().result_shape(operands, described)

    def combine(self, a: NDArray[np.int64], b: NDArray[np.int64]) -> Image:
        """The affine operation."""
        return affine(a, b, self.affine)

    def combine_onnx(self, w: Writer, a: str, b: str) -> str:
        """Weighted sum."""
        weighted = [w.math("Mul", x, m) for x, m in ((a, self.affine.m1), (b, self.affine.m2))]
        return w.affine(w.op("Add", (weighted[0], weighted[1])), self.affine)

    def instruction(self) -> tuple[Kind, Mapping[str, int]]:
        """VADD."""
        return Kind.VADD, self.affine.fields
