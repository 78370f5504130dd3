"""From instructions to layers: when each layer is done, and what each one cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from compiler.program.program import Program
from hw.spec import regs
from hw.spec.isa import QUEUED_UNITS, Unit
from sim.result import LayerResult

from .status import Pulses, Snapshot

_COMPUTING = (Unit.MAC, Unit.VEC)


@dataclass(frozen=True)
class Boundary:
    """The end of a layer: the unit and its count of finished instructions at which the last of its results is made."""

    layer: int
    unit: Unit
    count: int


def unit_ordinals(program: Program) -> list[int]:
    """For every instruction its number within its own unit."""
    seen: dict[Unit, int] = defaultdict(int)
    ordinals = []
    for instruction in program.instructions:
        ordinals.append(seen[instruction.unit])
        seen[instruction.unit] += 1
    return ordinals


def boundaries(program: Program) -> list[Boundary]:
    """Ends of all layers that have instructions, in the order in which the program ends them.

    A layer ends with its last computing instruction; one that only moves data ends with its last move.
    """
    ordinals = unit_ordinals(program)
    last: dict[int, int] = {}
    for index, (instruction, source) in enumerate(zip(program.instructions, program.provenance, strict=True)):
        if instruction.unit is Unit.CONTROL or not 0 <= source.layer < len(program.layers):
            continue
        before = last.get(source.layer)
        computes = instruction.unit in _COMPUTING
        if before is None or computes or program.instructions[before].unit not in _COMPUTING:
            last[source.layer] = index
    ends = sorted(last.items(), key=lambda item: item[1])
    return [Boundary(layer, program.instructions[i].unit, ordinals[i] + 1) for layer, i in ends]


def layer_results(
    program: Program,
    ends: list[Boundary],
    pulses: Pulses,
    snapshots: list[Snapshot],
    first_cycle: int,
    counters: Mapping[str, int],
) -> tuple[LayerResult, ...]:
    """Cost of every layer: cycles by `spans`, busy and stalled cycles by the counters as they stood at its end.

    `counters` are those of the whole run; the last layer also takes what came after its end. Empty when the
    hardware has no trace port.
    """
    if not any(len(done) for done in pulses.done):
        return ()
    cycles = spans(program, pulses, first_cycle, first_cycle + counters["CYCLES"])
    spent: dict[int, dict[str, int]] = {}
    before: Mapping[str, int] = dict.fromkeys(counters, 0)
    for number, end in enumerate(ends):
        is_last = number == len(ends) - 1
        now = counters if is_last else snapshots[number].counters if number < len(snapshots) else before
        spent[end.layer] = {n: now[n] - before[n] for n in counters}
        before = now
    return tuple(_layer(program, n, cycles[n], spent.get(n, {})) for n in range(len(program.layers)))


def spans(program: Program, pulses: Pulses, first: int, last: int) -> list[int]:
    """Cycles of every layer; together all from `first` to `last`.

    The array is the clock: the time from the end of one CONV to the end of the next belongs to the latter's layer,
    but for what lies before its start and the end of vector instructions at work there. What comes after the last
    CONV belongs to the layers that finish there.
    """
    cycles = [0] * len(program.layers)
    vector = _Work(program, pulses, Unit.VEC)
    at = first
    for layer, start, done in _Work(program, pulses, Unit.MAC).items:
        if start > at:
            at = vector.charge(cycles, at, start)
        cycles[layer] += done - at
        at = done
    at = vector.charge(cycles, at, last)
    final = next((p.layer for p in reversed(program.provenance) if 0 <= p.layer < len(cycles)), None)
    if final is not None:
        cycles[final] += last - at
    return cycles


class _Work:
    """The finished instructions of one unit as (layer, start, done), in order."""

    def __init__(self, program: Program, pulses: Pulses, unit: Unit) -> None:
        own = [p.layer for i, p in zip(program.instructions, program.provenance, strict=True) if i.unit is unit]
        times = zip(own, pulses.started[unit].tolist(), pulses.done[unit].tolist(), strict=False)
        self.items: list[tuple[int, int, int]] = list(times)
        self._next = 0

    def charge(self, cycles: list[int], first: int, last: int) -> int:
        """Charge the layers at work between `first` and `last` with their time; gives the end of the last such time."""
        at = first
        while self._next < len(self.items) and self.items[self._next][1] < last:
            layer, _, done = self.items[self._next]
            if done > at:
                stop = min(done, last)
                # A pause before a vector instruction is that instruction's own wait.
                cycles[layer] += stop - at
                at = stop
            if done > last:
                break
            self._next += 1
        return at


def _layer(program: Program, index: int, cycles: int, spent: Mapping[str, int]) -> LayerResult:
    layer = program.layers[index]
    stall_names = [regs.stall_counter(u, s) for u in QUEUED_UNITS for s in regs.Stall]
    return LayerResult(
        name=layer.name,
        op=layer.op,
        macs=layer.macs,
        cycles=cycles,
        mac_use=layer.macs / (cycles * program.params.macs) if cycles else 0.0,
        stalls={n: spent[n] for n in stall_names if spent.get(n)},
        busy={u.name: spent.get(f"{u.name}_BUSY", 0) for u in QUEUED_UNITS},
    )
