"""Hazards between instructions, and the completions that waits guarantee.

`AccessTracker` records the last instruction of each unit that read or wrote each word. The RAW, WAR and WAW hazards of
the next instruction follow from it. `Order` computes which instructions have finished when an instruction issues: from
its waits, from the waits of the instructions it waits for, and from the order inside a unit.

A unit issues and completes its instructions in order, but their execution overlaps. Inside a unit:

* MAC and VEC read operands in order and write results in order; only a RAW hazard needs a wait.
* LOAD and STORE issue bus transfers; every hazard needs a wait.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from intloom.common.errors import ProgramError
from intloom.compiler.program.footprint import Access, Memory, view
from intloom.hw.spec.isa import QUEUED_UNITS, Instruction, Unit
from intloom.hw.spec.params import HardwareParams

Counts = tuple[int, int, int, int]
"""Number of finished instructions of each unit."""

NOTHING: Counts = (0, 0, 0, 0)
_IN_ORDER_WRITERS = (Unit.MAC, Unit.VEC)
_WRITERS = {
    Memory.DRAM: (Unit.STORE,),
    Memory.SCRATCH: (Unit.LOAD, Unit.MAC, Unit.VEC),
    Memory.WEIGHT: (Unit.LOAD,),
}
_READERS = {
    Memory.DRAM: (Unit.LOAD,),
    Memory.SCRATCH: (Unit.MAC, Unit.VEC, Unit.STORE),
    Memory.WEIGHT: (Unit.MAC,),
}
_ROWS = {(m, True, u): row for m, units in _WRITERS.items() for row, u in enumerate(units)} | {
    (m, False, u): len(_WRITERS[m]) + row for m, units in _READERS.items() for row, u in enumerate(units)
}
"""Rows of writers, then of readers, in an array of the last accesses."""
_UNITS = {m: _WRITERS[m] + _READERS[m] for m in Memory}
_AXES = [tuple(range(1, count)) for count in range(6)]
"""The axes of a view with that number of dimensions, after the axis of units."""


def waits_of(instruction: Instruction) -> Counts:
    """The instruction's wait fields."""
    i = instruction
    return (i["wait_load"], i["wait_mac"], i["wait_vec"], i["wait_store"])


def _merge(a: Counts, b: Counts) -> Counts:
    """The larger count of each unit."""
    return max(a[0], b[0]), max(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3])


_View = tuple[Memory, bool, NDArray[np.int32]]
"""Memory, whether it is written, and for each unit the last accesses of the words."""


def _conflicts(unit: Unit, views: Sequence[_View]) -> Counts:
    need = [0, 0, 0, 0]
    for memory, write, words in views:
        units = _UNITS[memory]
        if not write:
            # A read conflicts with earlier writes only, a write also with earlier reads.
            units = _WRITERS[memory]
            words = words[: len(units)]
        # The unit's own WAR and WAW hazards are ordered by its pipeline; its RAW hazards are not.
        own = unit if write and unit in _IN_ORDER_WRITERS else None
        for other, number in zip(units, np.maximum.reduce(words, axis=_AXES[words.ndim]).tolist(), strict=True):
            if number > need[other] and other is not own:
                need[other] = number
    return (need[0], need[1], need[2], need[3])


class AccessTracker:
    """Last reader and writer of every word, by unit, as instruction numbers from 1; 0 means none."""

    def __init__(self, params: HardwareParams, memory_words: int) -> None:
        self.sizes = {
            Memory.DRAM: memory_words,
            Memory.SCRATCH: params.scratch_words,
            Memory.WEIGHT: params.weight_words,
        }
        # Writers first, so that one view covers them, or all units.
        self._last = {m: np.zeros((len(_WRITERS[m]) + len(_READERS[m]), n), np.int32) for m, n in self.sizes.items()}
        self._cached: dict[Access, list[_View]] = {}
        """The views of an access: most instructions repeat those of the tile before."""

    def _pieces(self, access: Access) -> Sequence[Access]:
        """The access, split where weight addresses wrap; an access outside its memory is an error."""
        size = self.sizes[access.memory]
        # `view` has no bounds check of its own.
        if access.last < size:
            return (access,)
        # Weight addresses wrap, but the words of one run must be different ones.
        if access.memory is not Memory.WEIGHT or access.dims[-1][0] > size:
            raise ProgramError(
                f"{'write' if access.write else 'read'} of {access.memory.name.lower()} word {access.last} is outside "
                f"its {size} words"
            )
        words = [access.base]
        for count, step in access.dims[:-1]:
            words = [w + k * step for w in words for k in range(count)]
        run, pieces = access.dims[-1][0], []
        for start in (w % size for w in words):
            head = min(run, size - start)
            pieces.append(Access(access.memory, access.write, start, ((head, 1),)))
            if run > head:
                pieces.append(Access(access.memory, access.write, 0, ((run - head, 1),)))
        return pieces

    def _views(self, accesses: Iterable[Access]) -> list[_View]:
        """Each access with a view of its words for all units."""
        every: list[_View] = []
        for access in accesses:
            views = self._cached.get(access)
            if views is None:
                last = self._last[access.memory]
                views = [(access.memory, access.write, view(last, p, len(last))) for p in self._pieces(access)]
                self._cached[access] = views
            every += views
        return every

    def conflicts(self, unit: Unit, accesses: Iterable[Access]) -> Counts:
        """The instructions of each unit that must have finished before `unit` makes these accesses."""
        return _conflicts(unit, self._views(accesses))

    def record(self, unit: Unit, number: int, accesses: Iterable[Access]) -> None:
        """Record that instruction `number` (from 1) of `unit` makes these accesses."""
        for memory, write, words in self._views(accesses):
            words[_ROWS[memory, write, unit]] = number

    def mark_initialized(self, access: Access) -> None:
        """Record that the words are initialized before the program starts, before any access is recorded."""
        for piece in self._pieces(access):
            # Not 0, so the word counts as written, and below every instruction number, so it needs no wait.
            view(self._last[access.memory][0], piece)[...] = -1

    def uninitialized(self, access: Access) -> int | None:
        """The first uninitialized word of a read, or None."""
        for piece in self._pieces(access):
            blank = (view(self._last[access.memory], piece, len(_WRITERS[access.memory])) == 0).all(axis=0)
            if blank.any():
                where = np.argwhere(blank)[0]
                return piece.base + sum(int(w) * s for w, (_, s) in zip(where, piece.dims, strict=True))
        return None


class Order:
    """The instructions guaranteed to have finished when each instruction issues."""

    def __init__(self) -> None:
        self._known: dict[Unit, list[Counts]] = {u: [] for u in QUEUED_UNITS}

    def count(self, unit: Unit) -> int:
        """Instructions of `unit` so far."""
        return len(self._known[unit])

    def known(self, unit: Unit, waits: Counts) -> Counts:
        """The instructions guaranteed to have finished when the next instruction of `unit` issues after `waits`."""
        before = self._known.get(unit, [])
        result = before[-1] if before else NOTHING
        for other, count in zip(QUEUED_UNITS, waits, strict=True):
            if count > result[other]:
                result = _merge(result, self._after(other, count))
        return result

    def _after(self, unit: Unit, count: int) -> Counts:
        """The instructions guaranteed to have finished when `unit` has finished `count` instructions."""
        done = [0, 0, 0, 0]
        done[unit] = count
        return _merge(self._known[unit][count - 1], (done[0], done[1], done[2], done[3]))

    def append(self, unit: Unit, waits: Counts) -> None:
        """Add the next instruction of `unit`."""
        self._known[unit].append(self.known(unit, waits))

    def needed_waits(self, unit: Unit, conflicts: Counts) -> Counts:
        """The waits that guarantee `conflicts`, without those that other waits imply."""
        done = self._known.get(unit)
        # What earlier instructions of the unit waited for has finished.
        waits = [c if c > d else 0 for c, d in zip(conflicts, done[-1] if done else NOTHING, strict=True)]
        if waits.count(0) >= len(waits) - 1:
            return (waits[0], waits[1], waits[2], waits[3])
        for other in QUEUED_UNITS:
            rest: Sequence[int] = [0 if u is other else waits[u] for u in QUEUED_UNITS]
            # Redundant waits are dropped one at a time, each against the waits that are left.
            if waits[other] and self.known(unit, (rest[0], rest[1], rest[2], rest[3]))[other] >= waits[other]:
                waits[other] = 0
        return (waits[0], waits[1], waits[2], waits[3])
