"""Products."""

from __future__ import annotations

from dataclasses import replace

from intloom.compiler.ir import Mul
from intloom.compiler.schedule.limits import check_instruction
from intloom.compiler.schedule.operators.registry import schedules
from intloom.compiler.schedule.stage_list import StageList
from intloom.compiler.schedule.vector_stages import ElementwiseStage, affine_fields
from intloom.hw.spec.isa import Kind


@schedules(Mul)
def schedule_mul(stages: StageList, node: Mul) -> None:
    """VMUL."""
    check_instruction(node, Kind.VMUL, stages.params)
    affine = replace(node.affine, m2=node.affine.m1)
    fields = affine_fields(affine) | {"zp_a": node.zero_a, "zp_b": node.zero_b}
    stage = ElementwiseStage(*stages.common(node), kind=Kind.VMUL, fields=fields, table=node.table)
    stages.add(stage, node.output)
