"""Where a program is cut: so that all segments end at about the same time by the compiler's forecast."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.program.forecast import forecast_of
from intloom.compiler.program.program import MemoryTiming, Program
from intloom.hw.spec.isa import INSTRUCTION_BYTES, QUEUED_UNITS, Instruction, Kind
from intloom.sim.parallel.segment import EPILOGUE, prologue_length
from intloom.sim.rtl.layers import unit_ordinals

WARM_UP = 20_000
"""Cycles, by the forecast, that a segment runs before the instructions at its seam are fetched. Measured: states meet
after 800 to 5,200 cycles."""
_LATE_START = 0.04
"""By how much a later segment ends later than its cycles say, as a share of the time of an RTL simulation up to its
cut. Measured on base with YOLOv8n@640: the instruction simulator takes 0.10 to the state at the cut, and the overlap is
simulated too, but late layers simulate at 717,000 cycles per second and early ones at 613,000."""
_PREFETCHED = 16
"""Instructions that fetch holds, at least."""


@dataclass(frozen=True)
class Cut:
    """The overlap of two segments, as instruction numbers."""

    first: int
    """First instruction of the later segment."""
    last: int
    """End (exclusive) of the earlier segment."""


@dataclass(frozen=True)
class Plan:
    """The cuts of a program, in order."""

    count: int
    """Instructions of the program."""
    cuts: tuple[Cut, ...]

    @property
    def segments(self) -> list[tuple[int, int]]:
        """First instruction and end of each segment."""
        starts, ends = [0, *(c.first for c in self.cuts)], [*(c.last for c in self.cuts), self.count]
        return list(zip(starts, ends, strict=True))

    @property
    def overlaps(self) -> list[tuple[int, int]]:
        """First instruction and end of each overlap."""
        return [(c.first, c.last) for c in self.cuts]


class Planner:
    """Chooses cuts, and extends overlaps that are too short.

    Parameters
    ----------
    program
        The program.
    timing
        The simulated memory's.
    warm_up
        Cycles before the seam.
    """

    def __init__(self, program: Program, timing: MemoryTiming, warm_up: int = WARM_UP) -> None:
        self.program = program
        self._warm_up = warm_up
        self._times = _finish_times(program, timing)
        p = program.params
        self._prologue = prologue_length(p)
        fetched = max(_PREFETCHED, 2 * p.burst_words * p.word_bytes // INSTRUCTION_BYTES)
        self._ahead = fetched + len(QUEUED_UNITS) * p.queue_depth

    def plan(self, segments: int) -> Plan:
        """At most `segments` segments; fewer where the program is too short for their overlaps."""
        count, total = len(self.program.instructions), int(self._times[-1])
        cuts: list[Cut] = []
        for number in range(1, segments):
            middle = int(np.searchsorted(self._times, total * _cut_at(number, segments)))
            cut = Cut(self._warmed(middle, self._warm_up), middle + self._ahead)
            if cut.first >= (cuts[-1].last if cuts else self._prologue) and cut.last <= count - EPILOGUE:
                cuts.append(cut)
        return Plan(count, tuple(cuts))

    def extended(self, plan: Plan, number: int) -> Plan:
        """The plan with twice the warm-up at a cut, or without this cut if it would reach the previous one."""
        cuts, cut = list(plan.cuts), plan.cuts[number]
        middle = cut.last - self._ahead
        warm_up = int(self._times[middle] - self._times[cut.first])
        first = self._warmed(middle, max(2 * warm_up, self._warm_up))
        first = min(first, self._warmed(cut.first - 1, 0))
        if first >= (cuts[number - 1].last if number else self._prologue):
            cuts[number] = Cut(first, cut.last)
        else:
            del cuts[number]
        return Plan(plan.count, tuple(cuts))

    def cycles(self, first: int, last: int) -> int:
        """Predicted cycles of the instructions from `first` to `last` (exclusive)."""
        return int(self._times[last - 1] - self._times[first])

    def _warmed(self, middle: int, warm_up: int) -> int:
        """The first instruction of a segment: no CONV of it continues sums that an earlier segment has."""
        first = int(np.searchsorted(self._times, self._times[middle] - warm_up))
        while _continues_sums(self.program.instructions[first:]):
            first -= 1
        return first


def _continues_sums(instructions: Sequence[Instruction]) -> bool:
    """Whether the first CONV starts from the sums of one before it."""
    conv = next((i for i in instructions if i.kind is Kind.CONV), None)
    return conv is not None and bool(conv["continue_sums"])


def _cut_at(number: int, segments: int) -> float:
    """The share of the cycles before a cut.

    With a cut at t, the next segment starts at s * t, where s is `_LATE_START`. It ends with the first one, whose
    length is the first cut, if the following cut is at (1 - s) * t + the first cut.
    """
    kept = 1 - _LATE_START
    return (1 - kept**number) / (1 - kept**segments)


def _finish_times(program: Program, timing: MemoryTiming) -> NDArray[np.int64]:
    """For each instruction the predicted cycle by which it and all earlier ones have finished."""
    predicted = forecast_of(program, timing)
    pairs = zip(program.instructions, unit_ordinals(program), strict=True)
    ends = (predicted.done[i.unit][number] if i.unit in QUEUED_UNITS else 0 for i, number in pairs)
    return np.array(list(accumulate(ends, max)), np.int64)
