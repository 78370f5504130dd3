"""Products of two tensors, and constant tensors."""

from __future__ import annotations

import numpy as np

from intloom.compiler.ir import Constant, Conv, MatMul
from intloom.compiler.program.memory import pack_blocks
from intloom.compiler.schedule.blank_lanes import has_blank_lanes
from intloom.compiler.schedule.convolution import Geometry
from intloom.compiler.schedule.limits import check_fields, unsupported
from intloom.compiler.schedule.matmul_stage import MatMulStage
from intloom.compiler.schedule.operators.registry import schedules
from intloom.compiler.schedule.stage_list import StageList
from intloom.hw.spec.isa import Kind


@schedules(Constant)
def schedule_constant(stages: StageList, node: Constant) -> None:
    """No stage: the constant image holds the tensor."""
    buffer = stages.placement.view(node.output).buffer
    buffer.constant, buffer.address = True, stages.image.add(pack_blocks(node.values, stages.params))


@schedules(MatMul)
def schedule_matmul(stages: StageList, node: MatMul) -> None:
    """A convolution with the second operand as its weights."""
    moving, stationary = (stages.graph.tensors[name] for name in node.inputs)
    pixels = stationary.height * stationary.width
    if moving.channels % stages.params.rows and not _reads_blank_lanes(stages, node):
        raise unsupported(
            node,
            f"its sums are over {moving.channels} channels, which do not fill words of {stages.params.rows}",
            "use a multiple, or a 1x1 convolution before it",
        )
    blocks = -(-moving.channels // stages.params.rows), -(-pixels // stages.params.cols)
    if node.zp_a and not stages.params.weight_sums:
        raise unsupported(node, f"its moving operand has the zero point {node.zp_a}", "set weight_sums = true")
    check_fields(node, Kind.CONV, {"in_blocks": blocks[0], "out_blocks": blocks[1]})
    weights = np.broadcast_to(np.zeros((), np.int16), (pixels, moving.channels, 1, 1))
    convolution = Conv(
        name=node.name,
        inputs=node.inputs[:1],
        output=node.output,
        weights=weights,
        bias=np.zeros(pixels, np.int32),
        mantissa=np.full(pixels, node.mantissa, np.uint32),
        shift=np.full(pixels, node.shift, np.uint8),
        zp_in=node.zp_a,
        zp_out=node.zp_out,
        table=node.table,
    )
    stage = MatMulStage(
        params=stages.params,
        origin=stages.origin(node),
        operands=(stages.placement.view(node.inputs[0]),),
        out=stages.placement.view(node.output),
        node=convolution,
        passes=[(Geometry((1, 1), (0, 0), (1, 1), (1, 1)), weights)],
        image=stages.image,
        group=1,
        stationary=stages.placement.view(node.inputs[1]),
        zero_point=node.zp_b,
    )
    stages.add(stage, node.output)


def _reads_blank_lanes(stages: StageList, node: MatMul) -> bool:
    return stages.params.cols >= stages.params.rows and has_blank_lanes(stages.graph, node)
