"""Plan: which stages run together, what stays in the scratchpad, and how each stage is cut into tiles."""

from intloom.compiler.schedule.plan.dataflow import Dataflow
from intloom.compiler.schedule.plan.groups import Goal, Group, find_groups
from intloom.compiler.schedule.plan.residency import Slot, choose_slots
from intloom.compiler.schedule.plan.tiling import choose_tilings
from intloom.compiler.schedule.stages.stage_list import Stages


def make_plan(stages: Stages, goal: Goal | None) -> tuple[Slot, ...]:
    """The slots with the cheapest groups, in order; without a goal, every tensor goes through DRAM.

    Raises
    ------
    CapacityError
        A stage does not fit the scratchpad or the weight memory; the message names sizes that do.
    """
    flow, tilings = Dataflow(stages), choose_tilings(stages)
    if goal is None:
        groups = [Group(k, k + 1) for k in range(len(stages.stages))]
    else:
        groups = find_groups(flow, stages.params, tilings, goal)
    return choose_slots(flow, groups, tilings, stages.params, keep=goal is not None)
