"""Maps instructions to layers: where each layer ends, and how many cycles it takes."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from intloom.compiler.program.layers import layer_cycles
from intloom.compiler.program.program import Program, array_use
from intloom.hw.spec import regs
from intloom.hw.spec.isa import QUEUED_UNITS, Unit
from intloom.sim.result import LayerResult, RunResult
from intloom.sim.rtl.status import Pulses

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
        # A move counts only while the layer has no computing instruction.
        if before is None or computes or program.instructions[before].unit not in _COMPUTING:
            last[source.layer] = index
    ends = sorted(last.items(), key=lambda item: item[1])
    return [Boundary(layer, program.instructions[i].unit, ordinals[i] + 1) for layer, i in ends]


def layer_results(program: Program, ends: list[Boundary], result: RunResult) -> tuple[LayerResult, ...]:
    """Cost of every layer: cycles by `spans`, busy and stalled cycles as differences of the counters at its end.

    The last layer includes what follows its end. Empty when the hardware has no trace port.
    """
    if result.pulses is None or not any(len(done) for done in result.pulses.done):
        return ()
    counters = result.counters
    cycles = spans(program, result.pulses, result.origin, result.origin + counters["CYCLES"])
    spent: dict[int, dict[str, int]] = {}
    before: Mapping[str, int] = dict.fromkeys(counters, 0)
    for number, end in enumerate(ends):
        # Snapshots are missing from the layer on at which a run stopped; these layers count nothing.
        is_last, is_known = number == len(ends) - 1, number < len(result.snapshots)
        now = counters if is_last else result.snapshots[number].counters if is_known else before
        spent[end.layer] = {n: now[n] - before[n] for n in counters}
        before = now
    return tuple(_layer(program, n, cycles[n], spent.get(n, {})) for n in range(len(program.layers)))


def spans(program: Program, pulses: Pulses, first: int, last: int) -> list[int]:
    """Cycles of every layer by `compiler.program.layers`, from the trace; together all from `first` to `last`."""
    times = (tuple(a.tolist() for a in pulses.started), tuple(a.tolist() for a in pulses.done))
    return layer_cycles(program.instructions, program.provenance, len(program.layers), times, (first, last))


def _layer(program: Program, index: int, cycles: int, spent: Mapping[str, int]) -> LayerResult:
    layer = program.layers[index]
    stall_names = [regs.stall_counter(u, s) for u in QUEUED_UNITS for s in regs.Stall]
    return LayerResult(
        name=layer.name,
        op=layer.op,
        macs=layer.macs,
        vector_macs=layer.vector_macs,
        cycles=cycles,
        mac_use=array_use(layer.macs, cycles, program.params),
        stalls={n: spent[n] for n in stall_names if spent.get(n)},
        busy={u.name: spent.get(f"{u.name}_BUSY", 0) for u in QUEUED_UNITS},
    )
