"""Concat: one table per input converts all inputs to the scale of the result.

Along channels, the result is then a matter of addresses. Along height and width, each part is padded with zeros to the
size of the result, and the parts are added.
"""

from dataclasses import replace

import numpy as np

from intloom.compiler.fold.arithmetic.runtime_evaluation import all_bytes, evaluate, to_int8, to_stored
from intloom.compiler.fold.arithmetic.tabulation import Int8s, clamp_table, vector_model
from intloom.compiler.fold.graph_builder import GraphBuilder, Operand, unit_name
from intloom.compiler.fold.lowering.common.spatial import SpatialOps
from intloom.compiler.fold.lowering.registry import lowers
from intloom.compiler.fold.patterns.quantization_unit import QuantizationUnit
from intloom.compiler.fold.target import Target
from intloom.compiler.ir import Concat, Tensor


@lowers("Concat")
def lower_concat(builder: GraphBuilder, unit: QuantizationUnit) -> None:
    """Lower a Concat of images along channels, height or width."""
    main = unit.operator
    operands = [builder.image(v) for v in main.inputs]
    axis, result = main.integer("axis", 1) % len(operands[0].shape), builder.result(unit)
    tables = _rescaling(builder, unit)
    clamps = clamp_table(builder, unit)
    parts = []
    for index, (operand, table) in enumerate(zip(operands, tables, strict=True)):
        if clamps is not None:
            table = clamps[table.view(np.uint8)]
        parts.append(_rescaled(builder, unit, operand, table, result, index))
    if axis != 1:
        _join(builder, unit, parts, result, down=axis == 2 and len(operands[0].shape) == 4)
        return
    node = Concat(name=unit_name(unit), inputs=tuple(parts), output=result.name)
    builder.finish(unit, node, result, Target.PLACEMENT)


def _join(builder: GraphBuilder, unit: QuantizationUnit, parts: list[str], result: Tensor, *, down: bool) -> None:
    """Bind the result to the sum of the padded parts."""
    mover, at = SpatialOps(builder, unit.origins), 0
    placed = []
    for name in parts:
        # After rescaling, every part has the scale of the result.
        part = builder.tensors[name]
        placed.append((part, (at, 0) if down else (0, at)))
        at += part.height if down else part.width
    whole = mover.join(placed, (result.height, result.width), result.name)
    builder.bind(unit.output, whole.name)
    builder.assign(unit, Target.VECTOR, "padded parts, added")


def _rescaling(builder: GraphBuilder, unit: QuantizationUnit) -> list[Int8s]:
    """Table of onnxruntime's Concat for every byte of each input."""
    main = unit.operator
    # Rescaling does not depend on the axis: one Concat of the vectors of all bytes gives the tables of all inputs.
    line = replace(main, attributes={**main.attributes, "axis": 0}, inputs=tuple(main.inputs))
    sources = {v: builder.model.producers[v] for v in main.inputs}
    model = builder.model.with_nodes((*sources.values(), line, unit.quantize))
    if unit.clamps:
        model = model.with_nodes(
            (*sources.values(), line, replace(unit.quantize, inputs=(unit.unclamped, *unit.quantize.inputs[1:])))
        )
    if main.qoperator is not None:
        model = builder.model.with_nodes(
            (replace(main.qoperator, attributes={**main.qoperator.attributes, "axis": 0}),)
        )
    names = tuple(dict.fromkeys(n.inputs[0] for n in sources.values()))
    part = vector_model(model, model.nodes, names, unit.output, 256)
    feeds = {n.inputs[0]: to_stored(all_bytes(), builder.operand(v).tensor.unsigned) for v, n in sources.items()}
    return list(np.split(to_int8(evaluate(part, feeds, builder.match)[0]), len(main.inputs)))


def _rescaled(
    builder: GraphBuilder, unit: QuantizationUnit, operand: Operand, table: Int8s, result: Tensor, index: int
) -> str:
    """The operand's tensor, or the result of `table` on it if the table is not the identity."""
    same = (operand.tensor.scale, operand.tensor.zero_point) == (result.scale, result.zero_point)
    if same and np.array_equal(table, all_bytes()):
        return operand.tensor.name
    name = f"{result.name}/in{index}"
    part = Tensor(name, operand.tensor.shape, result.scale, result.zero_point, result.unsigned)
    node = builder.table_node(f"{unit_name(unit)}/rescale{index}", operand.tensor.name, table, name)
    builder.emit(replace(node, origin=unit.origins), part)
    return name
