"""Checks of the counters of a completed run against each other and against what the bench counted itself."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from intloom.hw.spec.isa import QUEUED_UNITS, Instruction, Unit
from intloom.hw.spec.regs import Stall, stall_counter

_LATE_CYCLES = 64
"""The bench counts from its own start command to the interrupt: at most so many cycles more or less."""
_UNCOUNTED = 1
"""At most so many cycles of an instruction are neither busy nor stalled: the unit takes it from its queue."""


@dataclass(frozen=True, kw_only=True)
class BenchCounts:
    """What the bench counted; a bench without a count of beats has 0 read beats, which no run has."""

    cycles: int
    """From the start command to the interrupt."""
    read_beats: int = 0
    write_beats: int = 0


def contradictions(
    counters: Mapping[str, int], program: Sequence[Instruction], bench: BenchCounts | None
) -> Iterator[str]:
    """Why the counters cannot be true; a board has no counts of a bench."""
    cycles = counters["CYCLES"]
    if bench is not None and abs(bench.cycles - cycles) > _LATE_CYCLES:
        yield f"counter CYCLES is {cycles}, but {bench.cycles} cycles lie between the start command and the interrupt"
    if bench is not None and bench.read_beats:
        for name, beats in (("READ_BEATS", bench.read_beats), ("WRITE_BEATS", bench.write_beats)):
            if counters[name] != beats:
                yield f"counter {name} is {counters[name]}, but the memory transferred {beats} beats"
    instructions = Counter(i.unit for i in program)
    for unit in QUEUED_UNITS:
        yield from _of_unit(counters, unit, instructions[unit])


def _of_unit(counters: Mapping[str, int], unit: Unit, instructions: int) -> Iterator[str]:
    """A unit is busy or stalled, for one cause, in all cycles but those that take instructions from its queue."""
    cycles, done, busy = counters["CYCLES"], counters[f"{unit.name}_DONE"], counters[f"{unit.name}_BUSY"]
    stalls = sum(counters[stall_counter(unit, stall)] for stall in Stall)
    if done != instructions:
        yield f"unit {unit.name} has finished {done} instructions of {instructions}"
    if not 0 <= cycles - busy - stalls <= _UNCOUNTED * (instructions + 1):
        yield f"unit {unit.name} counts {busy} busy and {stalls} stalled cycles, but CYCLES is {cycles}"
