"""Scheduling: from an integer graph to a program, by passes, stages, plan and emission."""

from intloom.compiler.ir import IntGraph
from intloom.compiler.program.program import MemoryTiming, Program
from intloom.compiler.schedule import tuning
from intloom.compiler.schedule.emit import Progress, emit_program
from intloom.compiler.schedule.passes import rewrite
from intloom.compiler.schedule.plan import make_plan
from intloom.compiler.schedule.plan.groups import Goal
from intloom.compiler.schedule.stages import build_stages
from intloom.hw.spec.params import HardwareParams

__all__ = ["DEFAULT_MEMORY", "compile_graph"]

DEFAULT_MEMORY = MemoryTiming()


def compile_graph(
    graph: IntGraph,
    params: HardwareParams,
    *,
    keep_intermediates: bool = False,
    effort: int = 1,
    memory: MemoryTiming = DEFAULT_MEMORY,
    progress: Progress | None = None,
) -> Program:
    """Compile a graph for an accelerator.

    Parameters
    ----------
    graph
        The integer graph.
    params
        The accelerator; the graph's rounding mode must be the one that it was folded for.
    keep_intermediates
        Give every tensor its own memory, for debugging: nothing is fused or overwritten.
    effort
        How many schedules the search for fused groups tries: 1 to 3. With 0, every tensor goes through DRAM.
        Compile time is proportional to the number of searches: 1, 2 and 4.
    memory
        The memory that the schedule is made for; the program is right for every memory.
    progress
        Told how many tasks of how many have been emitted.

    Raises
    ------
    UnsupportedError
        A node that no instruction can express.
    CapacityError
        A node that does not fit the scratchpad or the weight memory; the message names sizes that do.
    """
    stages = build_stages(rewrite(graph, params, keep_intermediates), params, keep_intermediates=keep_intermediates)

    def compiled(goal: Goal | None) -> Program:
        return emit_program(graph, stages, make_plan(stages, goal), memory, keep=keep_intermediates, progress=progress)

    if keep_intermediates or effort == 0:
        return compiled(None)
    goals = [
        Goal(
            memory=memory,
            word_beats=params.word_beats,
            stripe_heights=effort,
            word_price=p * tuning.WORD_PRICE,
        )
        for p in tuning.PRICES[effort]
    ]
    # The estimate that a search uses is coarse, so the forecast decides between searches.
    return min((compiled(goal) for goal in goals), key=goals[0].score)
