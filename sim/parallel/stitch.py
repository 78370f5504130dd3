"""Joins the recordings of overlapping segments to one recording of the whole program."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from intloom.sim.parallel.seam import Seam
from intloom.sim.parallel.segment import Segment
from intloom.sim.rtl.recording import Recording
from intloom.sim.rtl.status import Pulses, Snapshot, Status

Counts = Mapping[str, int]


@dataclass(frozen=True, eq=False)
class SegmentRun:
    """One segment with its recording, and the seam and the run of the overlap at its start; None for the first."""

    segment: Segment
    recording: Recording
    seam: Seam | None = None
    overlap: Recording | None = None


@dataclass(frozen=True, eq=False)
class _Window:
    """The cycles of one segment that belong to the whole run, and what its counts lack."""

    part: SegmentRun
    first: int
    """In cycles of the segment."""
    end: int
    offset: int
    """Cycle of the whole run at cycle 0 of the segment."""
    before: Counts
    """Counters of the whole run minus those of the segment, at any cycle of the window."""
    clocked_before: Counts
    """The same for the clock edges of gated components."""

    def cycles(self, cycles: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """The cycles inside the window, in those of the whole run."""
        return self.moved(cycles[self._inside(cycles)])

    def log(self, log: NDArray[np.void]) -> NDArray[np.void]:
        """The entries inside the window, in cycles of the whole run."""
        entries = log[self._inside(log["cycle"])].copy()
        entries["cycle"] = self.moved(entries["cycle"])
        return entries

    def moved(self, cycles: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Cycles of the segment in those of the whole run."""
        return cycles + np.uint64(self.offset % (1 << 64))

    def _inside(self, cycles: NDArray[np.uint64]) -> NDArray[np.bool_]:
        return (cycles >= self.first) & (cycles < self.end)


def stitch(parts: Sequence[SegmentRun], wall_s: float) -> Recording:
    """The recording of the whole program, but for its memory, which is that of the last segment.

    The counters are exact: each overlap was run alone to its own end, so that its counters contain the prologue and the
    end of the earlier segment. Both cancel: whole = first segment + sum of (later segment - overlap).
    """
    windows = _windows(parts)
    last = windows[-1]
    counters = _sum(last.before, last.part.recording.report.counters)
    recording = last.part.recording
    final = last.offset + recording.report.last_cycle
    report = replace(
        recording.report,
        counters=counters,
        first_cycle=parts[0].recording.report.first_cycle,
        last_cycle=final,
        seconds=wall_s,
    )
    writes = [w.log(w.part.recording.writes) for w in windows if w.part.recording.writes is not None]
    pulses = _pulses(windows)
    return replace(
        recording,
        report=report,
        status=_status(recording.status, pulses, windows, counters),
        pulses=pulses,
        snapshots=_snapshots(windows),
        writes=np.concatenate(writes) if writes else None,
        bursts=None,
        clocked=_sum(last.clocked_before, last.part.recording.clocked),
        wall_s=wall_s,
    )


def _windows(parts: Sequence[SegmentRun]) -> list[_Window]:
    offset, first, before, clocked = 0, 0, Counter[str](), Counter[str]()
    windows = []
    for part, following in zip(parts, [*parts[1:], None], strict=True):
        if part.seam is not None and part.overlap is not None:
            first = part.seam.cut - part.seam.offset
            offset += part.seam.offset
            before.subtract(part.overlap.report.counters)
            clocked.subtract(part.overlap.clocked)
        end = following.seam.cut if following is not None and following.seam is not None else 1 << 63
        windows.append(_Window(part, first, end, offset, dict(before), dict(clocked)))
        before.update(part.recording.report.counters)
        clocked.update(part.recording.clocked)
    return windows


def _pulses(windows: Sequence[_Window]) -> Pulses:
    units = range(len(windows[0].part.recording.pulses.done))
    started = tuple(np.concatenate([w.cycles(w.part.recording.pulses.started[u]) for w in windows]) for u in units)
    done = tuple(np.concatenate([w.cycles(w.part.recording.pulses.done[u]) for w in windows]) for u in units)
    return Pulses(started, done)


def _status(last: Status, pulses: Pulses, windows: Sequence[_Window], counters: Counts) -> Status:
    """The status block at the end of the whole run."""
    return replace(
        last,
        cycle=windows[-1].offset + last.cycle,
        started=tuple(len(unit) for unit in pulses.started),
        done=tuple(len(unit) for unit in pulses.done),
        layers=windows[-1].part.segment.earlier_ends + last.layers,
        read_beats=counters["READ_BEATS"],
        write_beats=counters["WRITE_BEATS"],
    )


def _snapshots(windows: Sequence[_Window]) -> tuple[Snapshot, ...]:
    """The counters at the ends of all layers, each from the segment in whose window the layer ends."""
    snapshots: list[Snapshot] = []
    for window in windows:
        # A layer that ends in an overlap has a snapshot in both segments.
        skip = len(snapshots) - window.part.segment.earlier_ends
        own = window.part.recording.snapshots[skip:]
        inside = [s for s in own if s.cycle < window.end]
        snapshots += [Snapshot(window.offset + s.cycle, _sum(window.before, s.counters)) for s in inside]
    return tuple(snapshots)


def _sum(one: Counts, other: Counts) -> dict[str, int]:
    return {name: one.get(name, 0) + value for name, value in other.items()}
