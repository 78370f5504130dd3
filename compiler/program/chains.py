"""Chains of layers that run together, and their memory traffic beside the least possible."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from intloom.compiler.program.footprint import Memory, addresses, footprint
from intloom.compiler.program.program import Program
from intloom.hw.spec.formats import move_words
from intloom.hw.spec.isa import Kind, Unit

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
            moved[number] += move_words(instruction)
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
