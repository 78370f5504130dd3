"""Cycles of layers, against the definition, cycle by cycle."""

import random
from dataclasses import replace

import pytest

from intloom.compiler.program.layers import chains, layer_cycles
from intloom.compiler.program.program import Provenance
from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.isa import QUEUED_UNITS, Instruction, Kind, Unit, make
from intloom.hw.spec.params import preset
from intloom.sim.regress.graphs import GraphMaker


def by_cycle(spans: dict[Unit, list[tuple[int, int, int]]], layers: int, last: int) -> list[int]:
    """For each cycle the CONV that ends next, unless a vector instruction executes, or is next, before it starts."""
    cycles = [0] * layers
    for at in range(last):
        conv = next((c for c in spans[Unit.MAC] if c[2] > at), None)
        vector = next((v for v in spans[Unit.VEC] if v[2] > at), None)
        end = last if conv is None else conv[1]
        if at < end and vector is not None and vector[1] < end:
            cycles[vector[0]] += 1
        elif conv is not None:
            cycles[conv[0]] += 1
        else:
            cycles[-1] += 1
    return cycles


@pytest.mark.parametrize("number", range(60))
def test_each_cycle_belongs_to_the_layer_of_the_definition(number: int, rng: random.Random) -> None:
    """The units overlap at random, from dense to sparse; the last layer has the rest."""
    spans: dict[Unit, list[tuple[int, int, int]]] = {Unit.MAC: [], Unit.VEC: []}
    for every in spans.values():
        at = 0
        for _ in range(rng.randint(1, 6)):
            start = at + rng.randint(0, number)
            at = start + rng.randint(1, 40)
            every.append((rng.randrange(4), start, at))
    last = max(done for every in spans.values() for *_, done in every) + rng.randint(0, 9)
    order = [(unit, span) for unit, every in spans.items() for span in every]
    instructions: list[Instruction] = [make(Kind.CONV if unit is Unit.MAC else Kind.VADD) for unit, _ in order]
    instructions.append(make(Kind.END))
    provenance = [Provenance(layer=layer, tile=0) for _, (layer, _, _) in order] + [Provenance(layer=4, tile=0)]
    pulses = [[[span[k] for span in spans.get(unit, [])] for unit in QUEUED_UNITS] for k in (1, 2)]
    found = layer_cycles(instructions, provenance, 5, (pulses[0], pulses[1]), (0, last))
    assert found == by_cycle(spans, 5, last)


def test_a_chain_is_of_layers_that_alternate() -> None:
    """Neighbors of which one begins right behind the last instruction of the other are chains of their own."""
    maker = GraphMaker(1)
    program = compile_graph(maker.graph(maker.conv(maker.input(4, 4, 4), 4)), preset("nano"))
    for order, expected in {
        (0, 1): [(0,), (1,)],
        (0, 0, 1, 1): [(0,), (1,)],
        (0, 1, 0, 1): [(0, 1)],
        (1, 0, 1, 2, 3, 2): [(0, 1), (2, 3)],
        (0, 1, 2, 0, 3): [(0, 1, 2), (3,)],
    }.items():
        code = tuple(make(Kind.CONV) for _ in order)
        made = replace(program, instructions=code, provenance=tuple(Provenance(layer=n, tile=0) for n in order))
        assert [chain.layers for chain in chains(made)] == expected
