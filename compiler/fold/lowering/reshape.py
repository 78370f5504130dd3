"""Reshape, Flatten, Squeeze, Unsqueeze: another view of the same bytes."""

from math import prod

from intloom.common.errors import ModelError
from intloom.compiler.fold.arithmetic.tabulation import requant_table
from intloom.compiler.fold.graph_builder import GraphBuilder, unit_name
from intloom.compiler.fold.lowering.registry import lowers
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.fold.target import Target
from intloom.compiler.refusals import Refusal


@lowers("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Dropout")
def lower_view(builder: GraphBuilder, unit: QuantizationUnit) -> None:
    """Lower an operator that keeps the row-major order of bytes: its result is a view of the same bytes."""
    main = unit.operator
    x = builder.operand(main.input(0))
    shape = builder.shape(unit.output)
    if shape[:1] != (1,):
        raise Refusal.BATCH(f"its result has the shape {shape}", "keep a batch size of 1")
    if prod(shape) != prod(x.shape):
        # ONNX's shape inference does not compare the number of values with the shape that a Reshape asks for.
        raise ModelError(
            f"node {main.name!r}: its shape {shape} must have {prod(x.shape)} values, but it has {prod(shape)} values: "
            "correct the shape"
        )
    table = requant_table(builder, unit)
    if table is None:
        builder.bind(unit.output, x.tensor.name)
        builder.assign(unit, Target.PLACEMENT, "another view of the same bytes")
        return
    result = builder.tensor(unit.output, x.tensor.shape, builder.params(unit))
    builder.finish(unit, builder.table_node(unit_name(unit), x.tensor.name, table, result.name), result, Target.TABLE)
