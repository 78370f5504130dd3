"""Maximum and average pooling."""

from __future__ import annotations

from intloom.compiler.ir import AvgPool, MaxPool
from intloom.compiler.schedule.limits import check_fields, check_instruction, unsupported, window_fields
from intloom.compiler.schedule.operators.registry import schedules
from intloom.compiler.schedule.stage_list import StageList
from intloom.compiler.schedule.vector_stages import PoolStage
from intloom.hw.spec.isa import Kind

_WINDOW_SUM_BITS = 17
_INT8_BITS = 7


@schedules(MaxPool)
def schedule_max_pool(stages: StageList, node: MaxPool) -> None:
    """VMAX, once or once per axis."""
    check_fields(node, Kind.VMAX, window_fields(node.kernel, node.strides))
    stages.add(PoolStage(*stages.common(node), node=node), node.output)


@schedules(AvgPool)
def schedule_average_pool(stages: StageList, node: AvgPool) -> None:
    """VAVG."""
    check_instruction(node, Kind.VAVG, stages.params)
    check_fields(node, Kind.VAVG, window_fields(node.kernel, node.strides))
    if node.kernel[0] * node.kernel[1] << _INT8_BITS > 1 << _WINDOW_SUM_BITS:
        raise unsupported(node, f"the window may have {1 << _WINDOW_SUM_BITS - _INT8_BITS} pixels", "pool in two steps")
    stages.add(PoolStage(*stages.common(node), node=node), node.output)
