"""Moves vector tasks forward in the task order, so that the vector unit works in parallel with the MAC array.

Stages come in graph order, so the tasks of a pool or an addition would start after the last task of the convolution
before it. Each such task moves to `LAG` tasks behind the last one that writes what it reads.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from intloom.compiler.program.footprint import Memory
from intloom.compiler.program.forecast import forecast
from intloom.compiler.program.memory_timing import MemoryTiming
from intloom.compiler.schedule.emit.emitter import Emitter
from intloom.compiler.schedule.emit.tasks import Region, Step, Task
from intloom.compiler.schedule.plan.residency import Slot
from intloom.compiler.schedule.stages.placement import Buffer
from intloom.hw.spec.isa import QUEUED_UNITS, Kind, Unit
from intloom.hw.spec.params import POWERS

LAG = 2
"""Distance in tasks from the producer of a vector task's input to that task: its load need not wait for the store."""

_Writers = dict[Buffer, list[tuple[Region, int]]]


@dataclass(frozen=True)
class Interleaved:
    """A task order, and the slot during which each buffer is first written in that order."""

    tasks: list[Step]
    first_writes: dict[Buffer, int]


def _ready(task: Task, writers: _Writers) -> int | None:
    """Position of the last task that writes what `task` reads, or None if every input is in DRAM from the start."""
    last = -1
    for region in task.reads:
        # Most positions ascend, so the last writers first: others need no comparison of their words.
        for written, at in reversed(writers[region.buffer]):
            if at > last and written.overlaps(region):
                last = at
    return None if last < 0 else last


def _may_move(task: Task, slots: Sequence[Slot]) -> bool:
    """Whether a task may run in the first of these slots; the last one is its own."""
    used = {r.buffer for r in (*task.reads, *task.results)} & task.slot.local.keys()
    if any(s.stripes is not None or not used <= s.local.keys() for s in slots):
        return False
    if any(s.local[b] is not task.slot.local[b] for s in slots for b in used):
        return False
    own = sum(n.words for n in task.requests(Memory.SCRATCH))
    return max(s.low for s in slots) + 2 * own <= task.stage.params.scratch_words


def interleave(tasks: Sequence[Step], slots: Sequence[Slot]) -> Interleaved:
    """Reorder the tasks; every read still follows the writes that it depends on."""
    writers: _Writers = defaultdict(list)
    first_writes: dict[Buffer, int] = {}
    keys: list[tuple[int, bool, int]] = []
    for number, task in enumerate(tasks):
        position, moved = number, False
        if isinstance(task, Task) and task.stage.unit is Unit.VEC:
            ready = _ready(task, writers)
            if ready is not None and ready + LAG < number:
                first = tasks[ready + LAG].slot.index
                if _may_move(task, slots[first : task.slot.index + 1]):
                    position, moved = ready + LAG, True
        slot = tasks[position].slot.index
        for region in task.results:
            # The new position counts, so that a vector task that reads the result of a moved one can move as well.
            writers[region.buffer].append((region, position))
            first_writes[region.buffer] = min(first_writes.get(region.buffer, slot), slot)
        # At equal positions the task that stays comes first, and moved tasks keep their order.
        keys.append((position, moved, number))
    return Interleaved([tasks[number] for _, _, number in sorted(keys)], first_writes)


_DEEPEST = POWERS["queue_depth"][1]


def dispatch_order(emitter: Emitter, layers: int, memory: MemoryTiming) -> list[int]:
    """The numbers of a program's instructions in the order in which they are dispatched."""
    unchanged = list(range(len(emitter.instructions)))
    if not any(i.kind is Kind.VDEPTHWISE for i in emitter.instructions):
        return unchanged
    deep = emitter.params.replace(queue_depth=_DEEPEST)
    started = forecast(emitter.instructions, emitter.provenance, layers, deep, memory).started
    times = _start_times(emitter, started)
    # An instruction starts after the end of those that it waits for, so it follows them in this order too.
    first, *middle, last = unchanged
    return [first, *sorted(middle, key=lambda k: (times[k], k)), last]


def _start_times(emitter: Emitter, started: Sequence[Sequence[int]]) -> list[int]:
    following = {unit: iter(started[unit]) for unit in QUEUED_UNITS}
    return [next(following[i.unit]) if i.unit in following else 0 for i in emitter.instructions]
