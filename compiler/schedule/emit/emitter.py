"""The instruction stream: instructions in program order with the waits that follow from hazards, and their dispatch.

Dispatch is in order, so a full queue delays the other units. A depthwise tile is an instruction for each channel block.
If they all came before the array's next instruction, it would wait until all but a queue's depth of them have started.
Instructions are dispatched in the order in which they would start with deep queues. Each unit keeps its own order, so
the waits, which count its instructions, stay valid.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from intloom.compiler.program.footprint import Access, footprint
from intloom.compiler.program.forecast import run_times
from intloom.compiler.program.hazards import NOTHING, AccessTracker, Order
from intloom.compiler.program.program import MemoryTiming, Provenance
from intloom.hw.spec.isa import ISA_VERSION, QUEUED_UNITS, Instruction, Kind, make
from intloom.hw.spec.params import POWERS, HardwareParams

_DEEPEST = POWERS["queue_depth"][1]
_WAITS = tuple(f"wait_{u.name.lower()}" for u in QUEUED_UNITS)


@dataclass
class Emitter:
    """Instructions and their provenance so far; the first one is BEGIN."""

    params: HardwareParams
    tensor_words: int
    """Words of memory that loads and stores may touch."""
    instructions: list[Instruction] = field(default_factory=list)
    provenance: list[Provenance] = field(default_factory=list)

    results: dict[int, Access] = field(default_factory=dict)
    """The last access of each instruction; for those that compute, the words that they write."""

    def __post_init__(self) -> None:
        self._tracker = AccessTracker(self.params, self.tensor_words)
        self._order = Order()
        begin = make(Kind.BEGIN, version=ISA_VERSION, fingerprint=self.params.fingerprint())
        self._append(begin, Provenance(layer=-1, tile=-1))

    def end(self) -> None:
        """The last instruction of a program."""
        # END waits for every unit, so the interrupt comes after the last store.
        counts = {f"wait_{u.name.lower()}": self._order.count(u) for u in QUEUED_UNITS}
        self._append(make(Kind.END, **counts), Provenance(layer=-1, tile=-1))

    def emit(self, kind: Kind, provenance: Provenance, **fields: int) -> int:
        """Add an instruction with the waits that its hazards require; gives its index."""
        bare = make(kind, **fields)
        unit = bare.unit
        accesses = footprint(bare, self.params)
        conflicts = self._tracker.conflicts(unit, accesses)
        self._tracker.record(unit, self._order.count(unit) + 1, accesses)
        waits = self._order.needed_waits(unit, conflicts)
        self._order.append(unit, waits)
        if waits != NOTHING:
            bare = bare.with_waits(dict(zip(_WAITS, waits, strict=True)))
        self._append(bare, provenance)
        # The last access is the result, which the footprint lists after the reads.
        self.results[len(self.instructions) - 1] = accesses[-1]
        return len(self.instructions) - 1

    def reorder(self, order: Sequence[int]) -> None:
        """Bring the instructions into another order, in which each unit keeps its own, and waits follow what they name.

        No instruction can be added afterwards.
        """
        self.instructions = [self.instructions[k] for k in order]
        self.provenance = [self.provenance[k] for k in order]
        self.results.clear()

    def _append(self, instruction: Instruction, provenance: Provenance) -> None:
        self.instructions.append(instruction)
        self.provenance.append(provenance)


def dispatch_order(emitter: Emitter, memory: MemoryTiming) -> list[int]:
    """The numbers of a program's instructions in the order in which they are dispatched."""
    unchanged = list(range(len(emitter.instructions)))
    if not any(i.kind is Kind.VDEPTHWISE for i in emitter.instructions):
        return unchanged
    deep = emitter.params.replace(queue_depth=_DEEPEST)
    _, started, _ = run_times(emitter.instructions, deep, memory)
    times = _start_times(emitter, started)
    # An instruction starts after the end of those that it waits for, so it follows them in this order too.
    first, *middle, last = unchanged
    return [first, *sorted(middle, key=lambda k: (times[k], k)), last]


def _start_times(emitter: Emitter, started: Sequence[Sequence[int]]) -> list[int]:
    following = {unit: iter(started[unit]) for unit in QUEUED_UNITS}
    return [next(following[i.unit]) if i.unit in following else 0 for i in emitter.instructions]
