"""Nearest-neighbor enlargement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from intloom.compiler.ir.node import Node, Pair, operator
from intloom.compiler.ir.tensor import Shape, Tensor


@operator
@dataclass(frozen=True, eq=False, kw_only=True)
class Resize(Node):
    """Nearest-neighbor enlargement by whole factors: output (y, x) takes input (y // factor_h, x // factor_w)."""

    OPERANDS: ClassVar = 1

    factors: Pair

    def result_shape(self, operands: Sequence[Tensor], described: Shape) -> Shape:
        """Height and width times the factors."""
        (x,) = operands
        self.require(min(self.factors) > 0, "its factors must be positive", self.factors)
        return (1, x.channels, x.height * self.factors[0], x.width * self.factors[1])
