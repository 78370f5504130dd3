"""Registry of operator lowerings, by the main operator of a quantization unit."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from intloom.compiler.fold.graph_builder import GraphBuilder
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit

OperatorLowering = Callable[[GraphBuilder, QuantizationUnit], None]
_LOWERINGS: dict[str, OperatorLowering] = {}


def lowers(*ops: str) -> Callable[[OperatorLowering], OperatorLowering]:
    """Register a function as the lowering of units whose main operator is one of `ops`."""

    def register(rule: OperatorLowering) -> OperatorLowering:
        for op in ops:
            if op in _LOWERINGS:
                raise ValueError(f"operator {op} already has a lowering")
            _LOWERINGS[op] = rule
        return rule

    return register


def registered_lowerings() -> Mapping[str, OperatorLowering]:
    """The registered lowerings by operator."""
    return _LOWERINGS
