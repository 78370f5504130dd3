"""The check of a seam: from which cycle on two runs of overlapping segments are in the same state.

The earlier segment and a run of the overlap alone end with the same instructions. Their logs are compared from the end
backwards: start and end of every instruction, every burst on the bus with the memory's bandwidth credit, every stored
word. From the cycle on from which all entries have the same distance, both runs are in the same state: everything that
was in flight, queued or waiting then has had the same effect at the same time.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from intloom.hw.spec.isa import INSTRUCTION_BYTES, Unit
from intloom.sim.parallel.segment import EPILOGUE, Segment
from intloom.sim.rtl.job import MEMORY_BASE
from intloom.sim.rtl.recording import Recording

MARGIN = 64
"""Cycles before the first fetch of other instructions that are not used: a burst takes a few cycles to compute."""


@dataclass(frozen=True)
class Seam:
    """The overlap of two segments, in cycles of the earlier one."""

    offset: int
    """Cycle of the earlier segment in which the later one is at cycle 0."""
    equal_from: int
    """From this cycle on both are in the same state."""
    equal_to: int
    """Up to this cycle the earlier segment is in the state of the whole program, which then fetches other
    instructions."""

    @property
    def met(self) -> bool:
        """Whether both are in the state of the whole program at some cycle."""
        return self.equal_from <= self.equal_to

    @property
    def cut(self) -> int:
        """The cycle from which on the later segment continues the earlier one."""
        return (self.equal_from + self.equal_to) // 2


def find_seam(segment: Segment, earlier: Recording, overlap: Recording) -> Seam:
    """Compare a run of `segment` with a run of the overlap alone; both end with the same instructions."""
    offset = _last_store(earlier) - _last_store(overlap)
    pairs = zip(_logs(earlier), _logs(overlap), strict=True)
    differing = [_last_difference(a, _moved(b, offset)) for a, b in pairs]
    return Seam(offset, max(differing) + 1, _other_fetch(segment, earlier) - MARGIN)


def same_until(cycle: int, one: Recording, other: Recording) -> bool:
    """Whether two runs that start with the same instructions have the same logs up to `cycle` (exclusive)."""
    for a, b in zip(_logs(one), _logs(other), strict=True):
        first, second = a[a["cycle"] < cycle], b[b["cycle"] < cycle]
        if len(first) != len(second) or (first != second).any():
            return False
    return True


def _logs(recording: Recording) -> list[NDArray[np.void]]:
    """All logs as structured arrays with a field `cycle`."""
    if recording.bursts is None:
        raise ValueError("seams are found with the bursts on the bus; record them")
    pulses = [_pulse_log(unit) for side in (recording.pulses.started, recording.pulses.done) for unit in side]
    writes = () if recording.writes is None else (recording.writes,)
    return [*pulses, recording.bursts, *writes]


def _pulse_log(cycles: NDArray[np.uint64]) -> NDArray[np.void]:
    return cycles.view(np.dtype([("cycle", cycles.dtype)]))


def _moved(log: NDArray[np.void], offset: int) -> NDArray[np.void]:
    moved = log.copy()
    # Modulo 2**64, so that a negative offset works with unsigned cycles.
    moved["cycle"] += np.uint64(offset % (1 << 64))
    return moved


def _last_difference(one: NDArray[np.void], other: NDArray[np.void]) -> int:
    """The later cycle of the last pair of entries that differ, counted from the end; -1 if none does."""
    count = min(len(one), len(other))
    equal = one[len(one) - count :] == other[len(other) - count :]
    differing = np.flatnonzero(~equal)
    same = count - 1 - int(differing[-1]) if len(differing) else count
    return max((int(log["cycle"][len(log) - 1 - same]) for log in (one, other) if len(log) > same), default=-1)


def _last_store(recording: Recording) -> int:
    """End of the epilogue's STORE."""
    return int(recording.pulses.done[Unit.STORE][-1])


def _other_fetch(segment: Segment, recording: Recording) -> int:
    """Cycle of the first burst that reads an instruction of the epilogue."""
    program = segment.program
    end = MEMORY_BASE + program.instructions_at * program.params.word_bytes
    end += len(program.instructions) * INSTRUCTION_BYTES
    bursts = recording.bursts
    if bursts is None:
        raise ValueError("seams are found with the bursts on the bus; record them")
    last = bursts["address"] + bursts["beats"] * np.uint64(program.params.beat_bytes)
    epilogue = (bursts["write"] == 0) & (last > end - EPILOGUE * INSTRUCTION_BYTES) & (bursts["address"] < end)
    return int(bursts["cycle"][epilogue][0])
