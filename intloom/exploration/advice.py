"""What limits a compiled program, and what single changes of its hardware would do, by the forecast."""

from pathlib import Path

from intloom.compiler.frontend import fold_options
from intloom.compiler.program.program import MemoryTiming
from intloom.exploration.limits import Change, changes_of, explain
from intloom.exploration.points import Network, Task, pooled
from intloom.exploration.work import work_of
from intloom.flow.bundle import Bundle
from intloom.sim.processes import Processes

_MOST_INSTRUCTIONS = 14_000
"""Of all changes that are compiled: 5 seconds or less."""


def advise(bundle: Bundle, memory: MemoryTiming) -> str:
    """What limits a program with this memory, and what to change; changes only where the model is at hand."""
    params = bundle.program.params
    work = work_of(bundle.programs, memory)
    if bundle.folded is None:
        return explain(work.cycles)
    graphs = {fold_options(params): tuple(bundle.folded.regions)}
    network = Network(bundle.program.name, Path(), 1.0, graphs, f"{bundle.folded.source} {bundle.program.dims}")
    named = [*changes_of(params, work.cycles).items()]
    # Those of the largest loss come last, and are cheaper to build than a larger array.
    tried = min(len(named), _MOST_INSTRUCTIONS // len(bundle.program.instructions))
    tasks = {name: Task(changed, memory) for name, changed in named[len(named) - tried :]}
    outcomes = {task.key: done for task, done in pooled([network]).results([*tasks.values()], Processes())}
    changes = [
        Change(name, work, outcomes[task.key].works[0], params, task.params)
        for name, task in tasks.items()
        if not outcomes[task.key].reason
    ]
    return explain(work.cycles, changes)
