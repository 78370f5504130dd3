"""A range of channels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from intloom.compiler.ir.node import Node, operator
from intloom.compiler.ir.tensor import Shape, Tensor


@operator
@dataclass(frozen=True, eq=False, kw_only=True)
class Slice(Node):
    """Channels `start` to `stop` (half-open)."""

    OPERANDS: ClassVar = 1

    start: int
    stop: int

    def result_shape(self, operands: Sequence[Tensor], described: Shape) -> Shape:
        """The operand's shape with `stop - start` channels."""
        (x,) = operands
        inside = 0 <= self.start < self.stop <= x.channels
        self.require(inside, f"its range must lie in 0..{x.channels}", (self.start, self.stop))
        return (1, self.stop - self.start, x.height, x.width)
