"""Quantized product."""

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
class Mul(Elementwise):
    """`affine((a - zero_a) * (b - zero_b), 0)`, then the table."""

    affine: Affine
    zero_a: int
    zero_b: int

    def result_shape(self, operands: Sequence[Tensor], described: Shape) -> Shape:
        """The operands' shape; a pixel is broadcast."""
        self.check_affine(self.affine)
        return super().result_shape(operands, described)

    def combine(self, a: NDArray[np.int64], b: NDArray[np.int64]) -> Image:
        """Product of the operands without their zero points, scaled."""
        return affine((a - self.zero_a) * (b - self.zero_b), 0, self.affine)

    def combine_onnx(self, w: Writer, a: str, b: str) -> str:
        """Product of differences."""
        left, right = (w.math("Sub", x, z) for x, z in ((a, self.zero_a), (b, self.zero_b)))
        scaled = w.op("Mul", (w.op("Mul", (left, right)), w.integer(self.affine.m1)))
        return w.affine(scaled, self.affine)

    def instruction(self) -> tuple[Kind, Mapping[str, int]]:
        """VMUL, whose factors must be equal."""
        fields = self.affine.fields | {"m2": self.affine.m1}
        return Kind.VMUL, fields | {"zp_a": self.zero_a, "zp_b": self.zero_b}
