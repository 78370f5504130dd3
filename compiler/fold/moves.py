"""Helps lowerings of operators that only move values: one node, and a table where the result has another scale."""

from __future__ import annotations

from dataclasses import replace

from intloom.compiler.fold.bytewise import requant_table
from intloom.compiler.fold.lowering import Lowering, Operand, Verdict, unit_name
from intloom.compiler.fold.units import Unit
from intloom.compiler.ir import Node, Tensor


def finish_move(low: Lowering, unit: Unit, x: Operand, leaf: str, node: Node, verdict: Verdict) -> None:
    """Add `node`, whose result has the input's scale, and the table that changes the scale where the model does."""
    result = low.result(unit)
    table = requant_table(low, leaf, unit)
    if table is None:
        low.finish(unit, replace(node, output=result.name), result, verdict)
        return
    moved = Tensor(f"{result.name}/moved", result.shape, x.tensor.scale, x.tensor.zero_point, x.tensor.unsigned)
    low.emit(replace(node, output=moved.name, origin=unit.origins), moved)
    low.finish(unit, low.table_node(f"{unit_name(unit)}/rescale", moved.name, table, result.name), result, verdict)
