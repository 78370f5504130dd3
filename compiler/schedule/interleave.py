"""Lets the vector unit work beside the array: its tasks move forward to where their input is ready.

Stages come in the order of the graph, so the tasks of a pool or sum would run while the array waits for the last of
them. Each such task moves to `LAG` tasks behind the last one that writes what it reads; what it writes then lives from
there on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from intloom.compiler.schedule.tasks import Region, Task
from intloom.compiler.schedule.vector_stages import VectorStage

LAG = 2
"""Tasks from the one that writes a vector task's input to that task, so that the load need not wait for the store."""

_Writers = dict[int, list[tuple[Region, int]]]


def _ready(task: Task, writers: _Writers) -> int | None:
    """Place of the last task that writes what `task` reads, or None if everything is there from the start."""
    places = [at for r in task.reads for w, at in writers[id(r.buffer)] if w.overlaps(r)]
    return max(places, default=None)


def interleave(tasks: Sequence[Task]) -> list[Task]:
    """The tasks in an order that is as legal as the given one."""
    stage_at = [t.stage.index for t in tasks]
    writers: _Writers = defaultdict(list)
    keys: list[tuple[int, bool, int]] = []
    for number, task in enumerate(tasks):
        place, moved = number, False
        ready = _ready(task, writers) if isinstance(task.stage, VectorStage) else None
        if ready is not None and ready + LAG < number:
            place, moved = ready + LAG, True
        for region in task.writes:
            writers[id(region.buffer)].append((region, place))
            region.buffer.first_stage = min(region.buffer.first_stage, stage_at[place])
        keys.append((place, moved, number))
    return [tasks[number] for _, _, number in sorted(keys)]
