"""Quantized addition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from intloom.compiler.ir.node import Node, operator
from intloom.compiler.ir.tensor import Shape, Tensor
from intloom.hw.spec.arith import Affine


@operator
@dataclass(frozen=True, eq=False, kw_only=True)
class Add(Node):
    """`affine(a, b)`, then the table."""

    OPERANDS: ClassVar = 2

    affine: Affine
    table: bytes | None = None

    def result_shape(self, operands: Sequence[Tensor], described: Shape) -> Shape:
        """The operands' shape; a pixel is broadcast."""
        self.check_affine(self.affine)
        return self.pair_shape(operands)
