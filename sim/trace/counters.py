"""Counter tracks of a run: why units stall, and how many words of the local memories are in use."""

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

from intloom.compiler.program.footprint import Memory
from intloom.compiler.program.memory_map import memory_map
from intloom.compiler.program.program import Program
from intloom.hw.spec.isa import QUEUED_UNITS, Unit
from intloom.hw.spec.regs import Stall, stall_counter
from intloom.sim.result import RunResult
from intloom.sim.trace.events import Event
from intloom.sim.trace.export import CounterTrack

_MEMORIES = {"scratchpad words in use": Memory.SCRATCH, "weight memory words in use": Memory.WEIGHT}


def counter_tracks(program: Program, result: RunResult, timeline: Sequence[Event]) -> list[CounterTrack]:
    """Share of the cycles, in percent, in which each unit stalls, by cause; words in use of each local memory."""
    stalls = [_stalls(unit, result) for unit in QUEUED_UNITS]
    return [*stalls, *(_words(name, memory, program, timeline) for name, memory in _MEMORIES.items())]


def _stalls(unit: Unit, result: RunResult) -> CounterTrack:
    """Between the ends of two layers, at which the bench reads all counters."""
    samples: list[tuple[int, dict[str, float]]] = []
    regions = result.regions or (result,)
    for region, start in zip(regions, accumulate((r.cycles for r in regions), initial=0), strict=False):
        cycle, before = 0, Counter[str]()
        for snapshot in region.snapshots:
            end, now = snapshot.cycle - region.origin, Counter(snapshot.counters)
            if end <= cycle:
                continue
            shares = {s.name: (now[n] - before[n]) / (end - cycle) for s in Stall for n in (stall_counter(unit, s),)}
            samples.append((start + cycle, {name: 100 * share for name, share in shares.items()}))
            cycle, before = end, now
        if region.snapshots:
            samples.append((start + cycle, {s.name: 0.0 for s in Stall}))
    return CounterTrack(f"{unit.name} stalls, %", samples)


def _words(name: str, memory: Memory, program: Program, timeline: Sequence[Event]) -> CounterTrack:
    """From the start of the instruction that writes an extent to the end of its last reader."""
    spans = {e.index: (e.start, e.end) for e in timeline}
    changes: Counter[int] = Counter()
    for extent in memory_map(program):
        if extent.memory is memory and extent.first in spans:
            last = max((i for i in (extent.first, extent.last) if i in spans), default=extent.first)
            changes[spans[extent.first][0]] += extent.stop - extent.start
            changes[spans[last][1]] -= extent.stop - extent.start
    cycles = sorted(changes)
    totals = accumulate(changes[cycle] for cycle in cycles)
    return CounterTrack(name, [(cycle, {"words": total}) for cycle, total in zip(cycles, totals, strict=True)])
