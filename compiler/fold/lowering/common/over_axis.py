"""Operations over one axis of a value: over channels as the tensor has them, or of tokens over the last axis."""

from collections.abc import Callable
from dataclasses import replace

from intloom.compiler.fold.graph_builder import GraphBuilder, Operand
from intloom.compiler.fold.lowering.common.tokens import bind_tokens, read_tokens, token_results
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.fold.target import Target
from intloom.compiler.ir import Node
from intloom.compiler.refusals import Refusal


def lower_over_axis(
    builder: GraphBuilder,
    unit: QuantizationUnit,
    x: Operand,
    value: str,
    axis: int,
    make: Callable[[str, str], Node],
    note: str,
) -> None:
    """Lower a unit of the operand `x`, the value `value`; `make` gives the node from one tensor to another.

    Raises
    ------
    UnsupportedPattern
        The axis is neither the channels nor the last one.
    """
    shape = x.shape
    if axis == 1 and axis < len(shape) - 1:
        result = builder.result(unit)
        builder.finish(unit, make(builder.image(value).tensor.name, result.name), result, Target.VECTOR, note)
        return
    if axis != len(shape) - 1:
        raise Refusal.NORMALIZATION(f"it normalizes over axis {axis}", "transpose, so that it is the last axis")
    tokens = read_tokens(builder, unit, value)
    results = token_results(builder, unit, tokens, shape[axis])
    for part, result in zip(tokens.parts, results, strict=True):
        builder.emit(replace(make(part.name, result.name), origin=unit.origins), result)
    bind_tokens(builder, unit, results, tokens.pixels)
    builder.assign(unit, Target.VECTOR, note)
