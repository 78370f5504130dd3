"""Concatenation along channels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from intloom.compiler.ir.node import Node, operator
from intloom.compiler.ir.tensor import Shape, Tensor


@operator
@dataclass(frozen=True, eq=False, kw_only=True)
class Concat(Node):
    """Concatenation along channels of tensors with the same scale and zero point."""

    def result_shape(self, operands: Sequence[Tensor], described: Shape) -> Shape:
        """The operands' height and width, and all their channels."""
        self.require(len(operands) > 0, "it must have operands", 0)
        first = operands[0]
        for x in operands:
            self.require(x.shape[2:] == first.shape[2:], "operands must have one height and width", x.shape)
        return (1, sum(x.channels for x in operands), first.height, first.width)
