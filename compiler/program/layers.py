"""Attribution of a run's cycles to layers, and chains of layers that run together with their memory traffic."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from intloom.compiler.program.footprint import Memory, addresses, footprint
from intloom.compiler.program.program import Program, Provenance
from intloom.hw.spec.formats import memory_words
from intloom.hw.spec.isa import Instruction, Kind, Unit

Times = Sequence[Sequence[int]]
"""For each unit, the start or end cycles of its instructions, in order."""


def layer_cycles(
    instructions: Sequence[Instruction],
    provenance: Sequence[Provenance],
    layers: int,
    pulses: tuple[Times, Times],
    window: tuple[int, int],
) -> list[int]:
    """Cycles of every layer; their sum is the length of the window.

    The time from the end of one CONV to the end of the next one is attributed to the layer of the latter, except for
    the time before its start in which vector instructions execute. The time after the last CONV is attributed to the
    layers that finish in it.

    Parameters
    ----------
    instructions, provenance
        The program's.
    layers
        Number of layers.
    pulses
        Start and end of every instruction.
    window
        First cycle and end (exclusive).
    """
    cycles = [0] * layers
    at, last = window
    convolutions, others = (_finished(instructions, provenance, pulses, unit) for unit in (Unit.MAC, Unit.VEC))
    for layer, start, done in convolutions:
        if start > at:
            at = _charge(others, cycles, at, start)
        cycles[layer] += done - at
        at = done
    at = _charge(others, cycles, at, last)
    # BEGIN and END belong to no layer (-1).
    final = next((p.layer for p in reversed(provenance) if 0 <= p.layer < layers), None)
    if final is not None:
        cycles[final] += last - at
    return cycles


def _finished(
    instructions: Sequence[Instruction], provenance: Sequence[Provenance], pulses: tuple[Times, Times], unit: Unit
) -> deque[tuple[int, int, int]]:
    """The finished instructions of one unit as (layer, start, done), in order."""
    own = [p.layer for i, p in zip(instructions, provenance, strict=True) if i.unit is unit]
    started, done = pulses
    return deque(zip(own, started[unit], done[unit], strict=False))


def _charge(others: deque[tuple[int, int, int]], cycles: list[int], first: int, last: int) -> int:
    """Attribute the time between `first` and `last` to the layers that execute; returns the end of the last one."""
    at = first
    while others and others[0][1] < last:
        layer, _, done = others[0]
        if done > at:
            stop = min(done, last)
            # A gap before a vector instruction is attributed to that instruction: it waits.
            cycles[layer] += stop - at
            at = stop
        if done > last:
            break
        others.popleft()
    return at


_COMPUTE = frozenset({Unit.MAC, Unit.VEC})


@dataclass(frozen=True)
class Chain:
    """Layers whose instructions alternate; a layer that runs by itself is a chain of one."""

    layers: tuple[int, ...]
    moved_words: int
    """Words that its loads and stores move."""
    least_words: int
    """Words of DRAM that it touches, each counted once: the traffic if no word were moved twice."""


def chains(program: Program) -> tuple[Chain, ...]:
    """The chains in the order of their first instruction; layers without instructions are in none."""
    groups = list(_groups(program))
    chain_of = {layer: number for number, layers in enumerate(groups) for layer in layers}
    moved = [0] * len(groups)
    touched = [[np.empty(0, np.int64)] for _ in groups]
    for instruction, origin in zip(program.instructions, program.provenance, strict=True):
        number = chain_of.get(origin.layer)
        if number is not None and instruction.kind in (Kind.LOAD, Kind.STORE):
            moved[number] += memory_words(instruction)
            (access,) = (a for a in footprint(instruction, program.params) if a.memory is Memory.DRAM)
            touched[number].append(addresses(access))
    return tuple(
        Chain(tuple(sorted(layers)), words, np.unique(np.concatenate(parts)).size)
        for layers, words, parts in zip(groups, moved, touched, strict=True)
    )


def _groups(program: Program) -> Iterator[set[int]]:
    """Layers whose first to last array or vector instructions overlap, joined."""
    spans: dict[int, list[int]] = {}
    for index, (instruction, origin) in enumerate(zip(program.instructions, program.provenance, strict=True)):
        if instruction.spec.unit in _COMPUTE and origin.layer >= 0:
            spans.setdefault(origin.layer, [index, index])[1] = index
    group: set[int] = set()
    end = -1
    for layer, (first, last) in sorted(spans.items(), key=lambda item: item[1]):
        if group and first > end:
            yield group
            group = set()
        group.add(layer)
        end = max(end, last)
    if group:
        yield group
