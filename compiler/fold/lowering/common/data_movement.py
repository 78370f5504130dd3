"""Lowering of data movement operators: one node, and a table where the result has another scale."""

from dataclasses import replace

from intloom.compiler.fold.arithmetic.tabulation import requant_table
from intloom.compiler.fold.graph_builder import GraphBuilder, unit_name
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.fold.target import Target
from intloom.compiler.ir import Node, Tensor


def finish_data_movement(
    builder: GraphBuilder, unit: QuantizationUnit, node: Node, target: Target, result: Tensor | None = None
) -> None:
    """Add `node`, whose result has the input's scale, and a table if the model changes the scale.

    `result` describes the result where the model leaves out axes.
    """
    result, x = result or builder.result(unit), builder.tensors[node.inputs[0]]
    table = requant_table(builder, unit)
    if table is None:
        builder.finish(unit, replace(node, output=result.name), result, target)
        return
    moved = replace(x, name=f"{result.name}/moved", shape=result.shape)
    builder.emit(replace(node, output=moved.name, origin=unit.origins), moved)
    builder.finish(
        unit, builder.table_node(f"{unit_name(unit)}/rescale", moved.name, table, result.name), result, target
    )
