"""Order of a program's instructions across units: dispatch is in order, so a full queue delays the other units.

A depthwise tile is an instruction for each channel block. If they all came before the array's next instruction, it
would wait until all but a queue's depth of them have started. Instructions are dispatched in the order in which they
would start with deep queues. Each unit keeps its own order, so the waits, which count its instructions, stay valid.
"""

from __future__ import annotations

from collections.abc import Sequence

from intloom.compiler.emit.emitter import Emitter
from intloom.compiler.program.forecast import forecast
from intloom.compiler.program.memory_timing import MemoryTiming
from intloom.hw.spec.isa import QUEUED_UNITS, Kind
from intloom.hw.spec.params import POWERS

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
