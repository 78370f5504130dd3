"""Quantized product."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from intloom.compiler.ir.node import Node, operator
from intloom.compiler.ir.tensor import Shape, Tensor
from intloom.hw.spec.arith import Affine


@operator
@dataclass(frozen=True, eq=False, kw_only=True)
class Mul(Node):
    """`affine((a - zero_a) * (b - zero_b), 0)`, then the table."""

    OPERANDS: ClassVar = 2

    affine: Affine
    zero_a: int
    zero_b: int
    table: bytes | None = None

    def result_shape(self, operands: Sequence[Tensor], described: Shape) -> Shape:
        """The operands' shape; a pixel is broadcast."""
        self.check_affine(self.affine)
        return self.pair_shape(operands)
