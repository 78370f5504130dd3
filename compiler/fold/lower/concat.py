"""Concat: a table per input brings all to one scale, then it is, along channels, only a matter of places.

Along height and width each part is padded to the whole size with zeros, and the parts are added.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from intloom.compiler.fold.bytewise import Int8s, clamp_table, vector_part
from intloom.compiler.fold.lowering import Lowering, Operand, Verdict, lowers, unit_name
from intloom.compiler.fold.oracle import evaluate, every_byte, internal, stored
from intloom.compiler.fold.spatial import Mover
from intloom.compiler.fold.units import Unit
from intloom.compiler.ir import Concat, Tensor


@lowers("Concat")
def lower_concat(low: Lowering, unit: Unit) -> None:
    """Lower a Concat of images."""
    main = unit.main
    assert main is not None
    operands = [low.image(v) for v in main.inputs]
    axis, result = main.integer("axis", 1) % len(operands[0].shape), low.result(unit)
    tables = _rescaling(low, unit)
    clamps = clamp_table(low, unit)
    parts = []
    for index, (operand, table) in enumerate(zip(operands, tables, strict=True)):
        if clamps is not None:
            table = clamps[table.view(np.uint8)]
        parts.append(_rescaled(low, unit, operand, table, result, index))
    if axis != 1:
        _join(low, unit, parts, result, down=axis == 2 and len(operands[0].shape) == 4)
        return
    node = Concat(name=unit_name(unit), inputs=tuple(parts), output=result.name)
    low.finish(unit, node, result, Verdict.PLACEMENT)


def _join(low: Lowering, unit: Unit, parts: list[str], result: Tensor, *, down: bool) -> None:
    """Bind the result to the sum of the padded parts."""
    mover, at = Mover(low, unit.origins), 0
    placed = []
    for name in parts:
        # Views share one tensor's values, but each part is of the result's scale now.
        part = low.tensors[name]
        placed.append((part, (at, 0) if down else (0, at)))
        at += part.height if down else part.width
    whole = mover.join(placed, (result.height, result.width), result.name)
    low.bind(unit.output, whole.name)
    low.judge(unit, Verdict.VECTOR, "padded parts, added")


def _rescaling(low: Lowering, unit: Unit) -> list[Int8s]:
    """What the runtime's own Concat does to every byte of each input."""
    main = unit.main
    assert main is not None
    line = replace(main, attributes={**main.attributes, "axis": 0}, inputs=tuple(main.inputs))
    sources = {v: low.model.producers[v] for v in main.inputs}
    model = low.model.with_nodes((*sources.values(), line, unit.quantize))
    if unit.chain:
        model = model.with_nodes(
            (*sources.values(), line, replace(unit.quantize, inputs=(unit.body, *unit.quantize.inputs[1:])))
        )
    if main.kernel is not None:
        model = low.model.with_nodes((replace(main.kernel, attributes={**main.kernel.attributes, "axis": 0}),))
    names = tuple(dict.fromkeys(n.inputs[0] for n in sources.values()))
    part = vector_part(model, model.nodes, names, unit.output, 256)
    feeds = {n.inputs[0]: stored(every_byte(), low.operand(v).tensor.unsigned) for v, n in sources.items()}
    return list(np.split(internal(evaluate(part, feeds, low.match)[0]), len(main.inputs)))


def _rescaled(low: Lowering, unit: Unit, operand: Operand, table: Int8s, result: Tensor, index: int) -> str:
    """The operand's tensor, passed through `table` if that changes anything."""
    same = (operand.tensor.scale, operand.tensor.zero_point) == (result.scale, result.zero_point)
    if same and np.array_equal(table, every_byte()):
        return operand.tensor.name
    name = f"{result.name}/in{index}"
    part = Tensor(name, operand.tensor.shape, result.scale, result.zero_point, result.unsigned)
    node = low.table_node(f"{unit_name(unit)}/rescale{index}", operand.tensor.name, table, name)
    low.emit(replace(node, origin=unit.origins), part)
    return name
