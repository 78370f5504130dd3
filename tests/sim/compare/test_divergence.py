"""Deliberately broken accelerators: every injected bug is caught, and named down to the value that it mutated first."""

import re
from dataclasses import replace

import numpy as np
import pytest

from intloom.common.errors import SimulationError
from intloom.compiler.schedule import compile_graph
from intloom.flow.waves import choose_window
from intloom.hw.spec.isa import Kind
from intloom.sim.backend import GoldenBackend, RtlBackend
from intloom.sim.compare import compare
from intloom.sim.compare.divergence import find_divergence
from intloom.sim.golden import run_graph
from intloom.sim.regress.graphs import GraphMaker
from intloom.sim.rtl.fast import FastBench
from intloom.sim.rtl.options import RtlOptions
from intloom.sim.rtl.verilog import verilog_of
from tests.sim.rtl.planted import BUGS, PARAMS, plant, plusarg

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def case():
    maker = GraphMaker(5)
    x = maker.conv(maker.input(6, 12, 10), 8, 3, stride=2)
    y = maker.add(maker.conv(x, 8, 3), x)
    graph = maker.graph(maker.conv(maker.max_pool(y, 3, pad=1), 20, 1))
    return graph, compile_graph(graph, PARAMS), maker.random_inputs()


@pytest.fixture(scope="module")
def verilog():
    return plant(verilog_of(PARAMS))


def backend(verilog, bug=None):
    bench = FastBench(taps=True, plusargs=(plusarg(bug),))
    return RtlBackend(RtlOptions(bench=bench, verilog=verilog, watchdog=3000))


def test_asleep_the_bugs_do_nothing(case, verilog):
    graph, program, inputs = case
    result = backend(verilog).run(program, inputs)
    compare(GoldenBackend(graph).run(program, inputs).outputs, result.outputs).require_equal()
    assert find_divergence(program, inputs, RtlOptions(verilog=verilog)) is None


@pytest.mark.parametrize("bug", BUGS, ids=[b.name.replace(" ", "-") for b in BUGS])
def test_an_injected_bug_is_caught_and_named(case, verilog, bug):
    graph, program, inputs = case
    try:
        outputs = backend(verilog, bug).run(program, inputs).outputs
        caught = compare(GoldenBackend(graph).run(program, inputs).outputs, outputs).differing_bytes > 0
    except SimulationError as error:
        caught = "WATCHDOG" in str(error)
    assert caught
    found = find_divergence(program, inputs, RtlOptions(verilog=verilog), plusargs=(plusarg(bug),))
    assert found is not None
    assert f"unit {bug.unit.name}," in found.description
    assert found.node
    assert program.layers[program.provenance[found.instruction].layer].name == found.layer
    assert found.expected != found.got
    if found.coordinate and found.expected is not None:
        golden = run_graph(graph, inputs, match=PARAMS.match, keep=True)[found.tensor]
        assert golden[found.coordinate] == np.int8(found.expected)


def test_the_array_bug_is_named_to_the_column(case, verilog):
    _, program, inputs = case
    found = find_divergence(program, inputs, RtlOptions(verilog=verilog), plusargs=(plusarg(BUGS[0]),))
    assert program.instructions[found.instruction].kind is Kind.CONV
    place = re.search(r"unit MAC, cycle (\d+); scratch word \d+, byte (\d+)", found.description)
    assert int(place[1]) == found.cycle > 0 and int(place[2]) % PARAMS.cols == 1
    assert f"got {found.got}" in found.description


def test_waves_show_the_cycles_around_the_divergence(case, verilog):
    _, program, inputs = case
    found = find_divergence(program, inputs, RtlOptions(verilog=verilog), plusargs=(plusarg(BUGS[0]),))
    result = backend(verilog).observe(program, inputs)
    result = replace(result, inputs=inputs, regions=(result,), first_divergence=found)
    window = choose_window((program,), result)
    assert (window.first, window.last) == (max(0, found.cycle - 500), found.cycle + 500)
