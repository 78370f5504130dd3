"""A table look-up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from intloom.compiler.ir.node import Node, operator
from intloom.compiler.ir.tensor import Shape, Tensor


@operator
@dataclass(frozen=True, eq=False, kw_only=True)
class Table(Node):
    """A function of one byte."""

    OPERANDS: ClassVar = 1

    table: bytes

    def result_shape(self, operands: Sequence[Tensor], described: Shape) -> Shape:
        """The operand's shape."""
        return operands[0].shape
