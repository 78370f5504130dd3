"""From stages to slots with their local buffers, and from slots to tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from intloom.compiler.emit.constants import ConstantImage
from intloom.compiler.schedule.cuts import Goal, Group, find_groups
from intloom.compiler.schedule.dataflow import Dataflow
from intloom.compiler.schedule.residency import Residency
from intloom.compiler.schedule.slot import Slot
from intloom.compiler.schedule.stage import Stage
from intloom.compiler.schedule.stripe_tasks import fill, stripe_tasks
from intloom.compiler.schedule.tasks import Step, make_tasks
from intloom.compiler.schedule.tiling import Tiling
from intloom.hw.spec.params import HardwareParams


def schedule_slots(
    stages: Sequence[Stage],
    params: HardwareParams,
    tilings: Sequence[Tiling],
    goal: Goal | None,
) -> list[Slot]:
    """The slots of all stages in order; without a goal, every tensor goes through DRAM."""
    flow = Dataflow(stages)
    groups = [Group(k, k + 1, 0.0) for k in range(len(stages))]
    if goal is not None:
        groups = find_groups(flow, params, tilings, goal)
    residency = Residency(flow, groups, params)
    if goal is not None:
        residency.keep_between_groups(tilings)
        residency.start_vector_results_early(tilings)
    residency.allocate(tilings)
    return residency.slots


def slot_tasks(slot: Slot, image: ConstantImage) -> Iterator[Step]:
    """The tasks of a slot, in order."""
    if slot.stripes is not None:
        yield from stripe_tasks(slot, slot.stripes, image)
        return
    stage = slot.stages[0]
    for number, local in enumerate(
        dict.fromkeys(slot.local[v.buffer] for v in stage.operands if v.buffer in slot.local)
    ):
        if local.loaded and local.first_reader is stage:
            yield fill(slot, local, stage, number, (0, local.buffer.height))
    assert slot.tiling is not None  # set with the addresses
    yield from make_tasks(slot, slot.tiling, image)
