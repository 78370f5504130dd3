"""Registry of evaluated operators."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from intloom.common.registry import Registry
from intloom.compiler.importer import Constant, Model, OnnxNode

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """One node with its operand arrays; `model` has types and opset."""

    model: Model
    node: OnnxNode
    operands: tuple[Constant | None, ...]
    """Operands in the node's order; None for an omitted one."""

    def operand(self, index: int) -> Constant:
        """An operand that must be present."""
        operand = self.operands[index] if index < len(self.operands) else None
        if operand is None:
            raise IndexError(f"node {self.node.name!r} has no operand {index}")
        return operand

    def given(self, index: int) -> bool:
        """Whether the operand is present."""
        return index < len(self.operands) and self.operands[index] is not None

    @property
    def bound(self) -> Model:
        """The model with all operands as constants."""
        named = {n: c for n, c in zip(self.node.inputs, self.operands, strict=True) if n and c is not None}
        return self.model.with_nodes((self.node,), constants=named)


Rule = Callable[[Evaluation], tuple[Constant, ...]]
EVALUATIONS: Registry[str, Rule] = Registry("an evaluation")
"""Evaluations of operators of the standard domain."""
evaluates = EVALUATIONS.register
