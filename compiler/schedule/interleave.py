"""Moves vector tasks forward in the task order, so that the vector unit works in parallel with the MAC array.

Stages come in graph order, so the tasks of a pool or an addition would start after the last task of the convolution
before it. Each such task moves to `LAG` tasks behind the last one that writes what it reads.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from intloom.compiler.schedule.geometry import Buffer
from intloom.compiler.schedule.tasks import Region, Task
from intloom.compiler.schedule.vector_stages import VectorStage

LAG = 2
"""Distance in tasks from the producer of a vector task's input to that task: its load need not wait for the store."""

_Writers = dict[Buffer, list[tuple[Region, int]]]


@dataclass(frozen=True)
class Interleaved:
    """A task order, and the stage during which each buffer is first written in that order."""

    tasks: list[Task]
    first_writes: dict[Buffer, int]


def _ready(task: Task, writers: _Writers) -> int | None:
    """Position of the last task that writes what `task` reads, or None if every input is in DRAM from the start."""
    positions = [at for r in task.reads for w, at in writers[r.buffer] if w.overlaps(r)]
    return max(positions, default=None)


def interleave(tasks: Sequence[Task]) -> Interleaved:
    """Reorder the tasks; every read still follows the writes that it depends on."""
    stage_at = [t.stage.index for t in tasks]
    writers: _Writers = defaultdict(list)
    first_writes: dict[Buffer, int] = {}
    keys: list[tuple[int, bool, int]] = []
    for number, task in enumerate(tasks):
        position, moved = number, False
        ready = _ready(task, writers) if isinstance(task.stage, VectorStage) else None
        if ready is not None and ready + LAG < number:
            position, moved = ready + LAG, True
        for region in task.writes:
            # The new position counts, so that a vector task that reads the result of a moved one can move as well.
            writers[region.buffer].append((region, position))
            stage = stage_at[position]
            first_writes[region.buffer] = min(first_writes.get(region.buffer, stage), stage)
        # At equal positions the task that stays comes first, and moved tasks keep their order.
        keys.append((position, moved, number))
    return Interleaved([tasks[number] for _, _, number in sorted(keys)], first_writes)
