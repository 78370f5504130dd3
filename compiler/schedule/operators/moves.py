"""Operations that only move bytes: table look-up, enlargement, channel slice and concatenation."""

from __future__ import annotations

from intloom.compiler.ir import Concat, Resize, Slice, Table
from intloom.compiler.schedule.limits import check_fields
from intloom.compiler.schedule.operators.registry import schedules
from intloom.compiler.schedule.placement import node_input
from intloom.compiler.schedule.stage_list import StageList
from intloom.compiler.schedule.vector_stages import ConcatStage
from intloom.hw.spec.isa import Kind


@schedules(Table)
def schedule_table(stages: StageList, node: Table) -> None:
    """A copy through the table."""
    stages.copy(node, node_input(node), stages.placement.view(node.output), table=node.table)
    stages.derive(node, table=node.table)


@schedules(Resize)
def schedule_resize(stages: StageList, node: Resize) -> None:
    """An enlarging copy."""
    check_fields(node, Kind.VCOPY, {"up_h": node.factors[0], "up_w": node.factors[1]})
    stages.copy(node, node_input(node), stages.placement.view(node.output), factors=node.factors)
    stages.derive(node, factors=node.factors)


@schedules(Slice)
def schedule_slice(stages: StageList, node: Slice) -> None:
    """A view if the slice starts at a word's first byte, else a copy."""
    if not stages.placement.is_view(node):
        stages.copy(node, node_input(node), stages.placement.view(node.output), start=node.start)
    stages.derive(node, start=node.start)


@schedules(Concat)
def schedule_concat(stages: StageList, node: Concat) -> None:
    """A copy for each part that is not written in place; a ConcatStage if parts do not start at whole words."""
    whole = stages.placement.view(node.output)
    if not stages.placement.is_regular(node):
        stages.add(ConcatStage(*stages.common(node)), node.output)
        return
    at = 0
    for tensor in node.inputs:
        target = whole.part(at, at + stages.graph.tensors[tensor].channels)
        if stages.placement.view(tensor) != target:
            stages.copy(node, tensor, target)
        at += target.channels
