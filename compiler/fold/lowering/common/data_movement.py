"""Lowering of data movement operators: one node, and a table where the result has another scale."""

from dataclasses import replace

from intloom.compiler.fold.arithmetic.tabulation import requant_table
from intloom.compiler.fold.graph_builder import GraphBuilder, Operand, unit_name
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.fold.target import Target
from intloom.compiler.ir import Node, Tensor


def finish_data_movement(builder: GraphBuilder, unit: QuantizationUnit, x: Operand, node: Node, target: Target) -> None:
    """Add `node`, whose result has the input's scale, and a table if the model changes the scale."""
    result = builder.result(unit)
    table = requant_table(builder, unit)
    if table is None:
        builder.finish(unit, replace(node, output=result.name), result, target)
        return
    moved = Tensor(f"{result.name}/moved", result.shape, x.tensor.scale, x.tensor.zero_point, x.tensor.unsigned)
    builder.emit(replace(node, output=moved.name, origin=unit.origins), moved)
    builder.finish(
        unit, builder.table_node(f"{unit_name(unit)}/rescale", moved.name, table, result.name), result, target
    )
