"""Registry of operator lowerings, by the main operator of a quantization unit."""

from collections.abc import Callable

from intloom.common.registry import Registry
from intloom.compiler.fold.graph_builder import GraphBuilder
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit

OperatorLowering = Callable[[GraphBuilder, QuantizationUnit], None]

LOWERINGS: Registry[str, OperatorLowering] = Registry("a lowering")
lowers = LOWERINGS.register
"""Register a function as the lowering of units whose main operator is one of the arguments."""
