"""Elementwise operations: an instruction of the vector unit, or the residual addition of a convolution."""

from __future__ import annotations

from dataclasses import replace

from intloom.compiler.ir import Add
from intloom.compiler.ir.elementwise import Elementwise
from intloom.compiler.schedule.limits import check_instruction
from intloom.compiler.schedule.operators.conv import conv_stage
from intloom.compiler.schedule.operators.registry import schedules
from intloom.compiler.schedule.stage_list import StageList
from intloom.compiler.schedule.vector_stages import ElementwiseStage


@schedules(Elementwise)
def schedule_elementwise(stages: StageList, node: Elementwise) -> None:
    """The instruction that the operator names."""
    kind, fields = node.instruction()
    check_instruction(node, kind, stages.params)
    stages.add(ElementwiseStage(*stages.common(node), kind=kind, fields=fields, table=node.table), node.output)


@schedules(Add)
def schedule_add(stages: StageList, node: Add) -> None:
    """VADD, or a ConvStage with a residual."""
    conv = stages.residuals.get(node.name)
    if conv is None:
        schedule_elementwise(stages, node)
        return
    affine, other = node.affine, node.inputs[1]
    if node.inputs[0] != conv.output:
        affine, other = replace(affine, m1=affine.m2, m2=affine.m1), node.inputs[0]
    stages.add(conv_stage(stages, conv, node.output, affine, other), node.output)
