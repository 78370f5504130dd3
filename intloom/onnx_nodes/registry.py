"""The registry of evaluated operators, filled by decorator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from intloom.compiler.importer import Constant, Model, OnnxNode

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """One node with the arrays that it reads; `model` knows types and opset."""

    model: Model
    node: OnnxNode
    operands: tuple[Constant | None, ...]
    """Operands in the node's order; None where one is left out."""

    def operand(self, index: int) -> Constant:
        """An operand that must be there."""
        found = self.operands[index] if index < len(self.operands) else None
        if found is None:
            raise IndexError(f"node {self.node.name!r} has no operand {index}")
        return found

    def given(self, index: int) -> bool:
        """The operand is not left out."""
        return index < len(self.operands) and self.operands[index] is not None

    @property
    def bound(self) -> Model:
        """The model with all operands as constants of their names."""
        named = {n: c for n, c in zip(self.node.inputs, self.operands, strict=True) if n and c is not None}
        return self.model.with_nodes((self.node,), constants=named)


Rule = Callable[[Evaluation], tuple[Constant, ...]]
_RULES: dict[str, Rule] = {}


def evaluates(*ops: str) -> Callable[[Rule], Rule]:
    """Register the evaluation of operators."""

    def register(rule: Rule) -> Rule:
        for op in ops:
            if op in _RULES:
                raise ValueError(f"operator {op} already has an evaluation")
            _RULES[op] = rule
        return rule

    return register


def evaluator(op: str) -> Rule | None:
    """The evaluation of an operator of the standard domain, if there is one."""
    return _RULES.get(op)
