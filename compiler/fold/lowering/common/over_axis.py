"""Operations over one axis of a value: over channels as the tensor has them, or of tokens over the last axis."""

from collections.abc import Callable
from dataclasses import replace

from intloom.compiler.fold.graph_builder import GraphBuilder
from intloom.compiler.fold.lowering.common.tokens import bind_tokens, read_tokens, token_results
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.ir import Node
from intloom.compiler.refusals import Refusal


def lower_over_axis(
    builder: GraphBuilder, unit: QuantizationUnit, value: str, axis: int, make: Callable[[str, str], Node]
) -> None:
    """Emit and bind a unit of the operand `value`; `make` gives the node from one tensor to another.

    Raises
    ------
    UnsupportedPattern
        The axis is neither the channels nor the last one.
    """
    shape = builder.model.shape(value) or ()
    if axis == 1 and axis < len(shape) - 1:
        result = builder.result(unit)
        node = make(builder.image(value).tensor.name, result.name)
        builder.emit(replace(node, origin=unit.origins), result)
        builder.bind(unit.output, result.name)
        return
    if axis != len(shape) - 1:
        raise Refusal.NORMALIZATION(f"it normalizes over axis {axis}", "transpose, so that it is the last axis")
    tokens = read_tokens(builder, unit, value)
    results = token_results(builder, unit, tokens, shape[axis])
    for part, result in zip(tokens.parts, results.parts, strict=True):
        builder.emit(replace(make(part.name, result.name), origin=unit.origins), result)
    bind_tokens(builder, unit, results)
