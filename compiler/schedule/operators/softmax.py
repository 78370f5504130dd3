"""Softmax over channels."""

from __future__ import annotations

from intloom.compiler.ir import Softmax
from intloom.compiler.schedule.limits import check_fields, check_instruction
from intloom.compiler.schedule.operators.registry import schedules
from intloom.compiler.schedule.softmax_stage import SoftmaxStage
from intloom.compiler.schedule.stage_list import StageList
from intloom.hw.spec.isa import Kind


@schedules(Softmax)
def schedule_softmax(stages: StageList, node: Softmax) -> None:
    """VEXP and VSOFTMAX."""
    check_instruction(node, Kind.VSOFTMAX, stages.params)
    stage = SoftmaxStage(*stages.common(node), node=node)
    check_fields(node, Kind.VSOFTMAX, {"blocks": stage.out.blocks})
    stages.add(stage, node.output)
