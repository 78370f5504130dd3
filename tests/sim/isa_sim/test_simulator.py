"""Stepping, inspection, and the faults that the simulator catches."""

import dataclasses

import numpy as np
import pytest

from intloom.common.errors import ProgramError, UsageError
from intloom.compiler.program.program import Program
from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.isa import Kind
from intloom.hw.spec.params import preset
from intloom.sim.golden import run_graph
from intloom.sim.isa_sim import IsaSimulator
from intloom.sim.regress.graphs import GraphMaker


@pytest.fixture
def made():
    maker = GraphMaker(0)
    x = maker.conv(maker.input(16, 12, 12), 32, 3)
    graph = maker.graph(maker.max_pool(x, 3, pad=1))
    return maker, graph, compile_graph(graph, preset("base"), keep_intermediates=True)


def change(program: Program, kind: Kind, **fields: int) -> Program:
    index = next(k for k, i in enumerate(program.instructions) if i.kind is kind)
    changed = program.instructions[index].with_fields(**fields)
    return dataclasses.replace(
        program, instructions=(*program.instructions[:index], changed, *program.instructions[index + 1 :])
    )


def test_stepping_equals_running(made):
    maker, _, program = made
    inputs = maker.random_inputs()
    whole, stepped = IsaSimulator(program), IsaSimulator(program)
    expected = whole.run(inputs)
    stepped.reset(inputs)
    assert [stepped.step() for _ in program.instructions] == list(range(len(program.instructions)))
    assert stepped.finished
    np.testing.assert_array_equal(stepped.outputs()["t1"], expected["t1"])
    with pytest.raises(UsageError, match="has ended"):
        stepped.step()


def test_state_can_be_seen_and_changed(made):
    maker, graph, program = made
    inputs = maker.random_inputs()
    simulator = IsaSimulator(program)
    simulator.reset(inputs)
    last = max(k for k, i in enumerate(program.instructions) if i.kind is Kind.STORE)
    while simulator.position < last:
        simulator.step()
    expected = run_graph(graph, inputs, match=program.params.match, keep=True)
    np.testing.assert_array_equal(simulator.tensor("t0"), expected["t0"])
    simulator.machine.scratch[:] = 5
    while not simulator.finished:
        simulator.step()
    stored = program.instructions[last]
    assert (simulator.outputs()["t1"] == 5).sum() >= 16 * stored["n0"] * stored["n1"] * stored["n2"]


def test_wrong_requests_are_refused(made):
    maker, _, program = made
    simulator = IsaSimulator(program)
    with pytest.raises(UsageError, match="no state"):
        simulator.step()
    simulator.reset(maker.random_inputs())
    with pytest.raises(UsageError, match="is not stored in memory"):
        simulator.tensor("nothing")


@pytest.mark.parametrize(
    ("kind", "fields", "message"),
    [
        (Kind.BEGIN, {"fingerprint": 1}, "fingerprint"),
        (Kind.CONV, {"wait_load": 0}, "races with LOAD"),
        (Kind.CONV, {"wait_load": 9}, "may never start"),
        (Kind.CONV, {"in_base": 8000}, "reads uninitialized"),
        (Kind.CONV, {"out_base": 16380}, "outside"),
        (Kind.VMAX, {"wait_load": 0, "wait_mac": 0}, "races"),
        (Kind.STORE, {"wait_mac": 0}, "races with MAC"),
        (Kind.LOAD, {"dram": 100_000}, "outside"),
    ],
)
def test_what_hardware_would_trip_over_is_caught(made, kind, fields, message):
    maker, _, program = made
    with pytest.raises(ProgramError, match=message):
        IsaSimulator(change(program, kind, **fields)).run(maker.random_inputs())
