"""Every cycle of a run belongs to one layer; layers end with their last computing instruction."""

import numpy as np
import pytest

from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.isa import QUEUED_UNITS, Unit
from intloom.hw.spec.params import preset
from intloom.sim.backend import RtlBackend
from intloom.sim.regress.graphs import GraphMaker
from intloom.sim.rtl.layers import boundaries, spans
from intloom.sim.rtl.status import Pulses


@pytest.fixture(scope="module")
def case():
    maker = GraphMaker(4)
    x = maker.conv(maker.input(4, 8, 8), 8, 3)
    graph = maker.graph(maker.conv(maker.max_pool(x, 3, pad=1), 4, 1))
    return compile_graph(graph, preset("nano")), maker.random_inputs()


def serial(program, length=10):
    """Pulses of a machine that works one instruction after the other, each `length` cycles long."""
    started, done = ([[] for _ in QUEUED_UNITS] for _ in range(2))
    for n, instruction in enumerate(i for i in program.instructions if i.unit is not Unit.CONTROL):
        started[instruction.unit].append(length * n)
        done[instruction.unit].append(length * n + length)
    return Pulses(*(tuple(np.array(a, np.uint64) for a in rows) for rows in (started, done)))


def test_boundaries_lie_on_the_computing_units(case):
    program, _ = case
    ends = boundaries(program)
    assert [program.layers[e.layer].op for e in ends] == ["Conv", "MaxPool", "Conv"]
    assert [e.unit for e in ends] == [Unit.MAC, Unit.VEC, Unit.MAC]


def test_all_cycles_are_given_out_and_computing_layers_get_theirs(case):
    program, _ = case
    count = sum(i.unit is not Unit.CONTROL for i in program.instructions)
    cycles = spans(program, serial(program), 0, 10 * count + 7)
    assert sum(cycles) == 10 * count + 7
    assert all(c > 0 for c in cycles)


@pytest.mark.slow
def test_a_real_run_gives_every_cycle_to_a_layer(case):
    program, inputs = case
    result = RtlBackend().run(program, inputs)
    assert sum(layer.cycles for layer in result.layers) == result.cycles
    assert all(0 <= layer.mac_use <= 1 for layer in result.layers)
    for unit in QUEUED_UNITS:
        assert sum(layer.busy[unit.name] for layer in result.layers) == result.counters[f"{unit.name}_BUSY"]
