"""Joins the pulses of a run with the program: one event for every instruction that ran."""

from dataclasses import dataclass

from intloom.common.errors import UsageError
from intloom.compiler.program.program import Program
from intloom.hw.spec.isa import QUEUED_UNITS, Unit
from intloom.sim.result import RunResult
from intloom.sim.rtl.status import Pulses


@dataclass(frozen=True)
class Event:
    """One instruction on its unit; cycles count from the start command."""

    index: int
    unit: Unit
    kind: str
    layer: str
    tile: int
    note: str
    start: int
    end: int


def events(program: Program, result: RunResult) -> list[Event]:
    """All instructions that ran, by their numbers; raises `UsageError` when the run left no trace."""
    if result.pulses is None or not any(len(p) for p in result.pulses.started):
        raise UsageError(f"the run of {program.name!r} left no trace: run it on hardware with parameter trace = true")
    counts = dict.fromkeys(QUEUED_UNITS, 0)
    events = []
    for index, instruction in enumerate(program.instructions):
        unit = instruction.unit
        if unit is Unit.CONTROL:
            continue
        span = _span(result.pulses, unit, counts[unit], result.origin)
        # Counted even without a span, since pulses are matched by position.
        counts[unit] += 1
        if span is None:
            continue
        source = program.provenance[index]
        layer = program.layers[source.layer].name if 0 <= source.layer < len(program.layers) else ""
        events.append(Event(index, unit, str(instruction.kind), layer, source.tile, source.note, *span))
    return events


def _span(pulses: Pulses, unit: Unit, number: int, origin: int) -> tuple[int, int] | None:
    """Start and end of the unit's instruction `number`; None when it did not finish."""
    started, done = pulses.started[unit], pulses.done[unit]
    if number >= len(started) or number >= len(done):
        return None
    return int(started[number]) - origin, int(done[number]) - origin
