"""User-defined operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from intloom.compiler.ir.node import Node, operator
from intloom.compiler.ir.tensor import Shape, Tensor


@operator
@dataclass(frozen=True, eq=False, kw_only=True)
class Custom(Node):
    """A user-defined operation; its semantics are in the registry of custom operators."""

    domain: str
    op: str
    attributes: Mapping[str, int | float | str | tuple[int, ...]] = field(default_factory=dict)

    def result_shape(self, operands: Sequence[Tensor], described: Shape) -> Shape:
        """The described shape."""
        return described
