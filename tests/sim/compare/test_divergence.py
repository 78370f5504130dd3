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
from intloom.sim.compare.divergence import find_divergence, first_wrong_write
from intloom.sim.compare.expected_writes import expected_writes, write_count, writer_of
from intloom.sim.golden import run_graph
from intloom.sim.regress.graphs import GraphMaker
from intloom.sim.rtl.fast import FastBench
from intloom.sim.rtl.options import RtlOptions
from intloom.sim.rtl.verilog import verilog_of
from intloom.sim.rtl.write_log import Writer, byte_masks
from tests.sim.rtl.planted import BUGS, PARAMS, plant, plusarg


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


@pytest.mark.slow
def test_asleep_the_bugs_do_nothing(case, verilog):
    graph, program, inputs = case
    result = backend(verilog).run(program, inputs)
    compare(GoldenBackend(graph).run(program, inputs).outputs, result.outputs).require_equal()
    assert find_divergence(program, inputs, RtlOptions(verilog=verilog)) is None


@pytest.mark.slow
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


@pytest.fixture(scope="module")
def observed(case, verilog):
    """A run without a bug, and for each of its records the instruction that wrote it."""
    _, program, inputs = case
    seen = backend(verilog).observe(program, inputs, log_writes=True)
    assert first_wrong_write(program, inputs, seen) is None
    writers = np.full(len(seen.writes), -1)
    for writer in Writer:
        indices = [i for i, n in enumerate(program.instructions) if writer_of(n) is writer]
        counts = [write_count(program.instructions[i], PARAMS) for i in indices]
        writers[seen.writes["writer"] == writer] = np.repeat(indices, counts)
    assert (writers >= 0).all() and len({*writers}) > 20
    return seen, writers


def _flipped(rng, record):
    """A bit of a byte that is written."""
    byte = rng.choice(np.flatnonzero(byte_masks(record[None], PARAMS.rows)[0]))
    record["data"][byte] ^= 1 << rng.integers(8)


def _moved(rng, record, expected):
    """To a word that the instruction does not write, with the bytes that are there."""
    others = np.setdiff1d(np.arange(len(expected.content)), expected.words)
    record["word"] = rng.choice(others)
    record["data"] = expected.content[record["word"]]


@pytest.mark.parametrize("change", ["flipped", "moved", "dropped"])
def test_a_wrong_record_names_its_instruction(case, observed, seed, change):
    _, program, inputs = case
    rng = np.random.default_rng(seed)
    seen, writers = observed
    for at in [*rng.choice(len(writers), 100), *(np.flatnonzero(writers == w)[-1] for w in {*writers})]:
        writes, index = seen.writes.copy(), writers[at]
        if change == "flipped":
            _flipped(rng, writes[at])
        elif change == "moved":
            _moved(rng, writes[at], next(e for e in expected_writes(program, inputs) if e.index == index))
        else:
            writes = np.delete(writes, at)
        found = first_wrong_write(program, inputs, replace(seen, writes=writes))
        assert found is not None and found.instruction == index, at
        if change != "dropped":
            assert (found.expected is None) == (change == "moved") and found.got not in (None, found.expected)


@pytest.mark.slow
def test_the_array_bug_is_named_to_the_column(case, verilog):
    _, program, inputs = case
    found = find_divergence(program, inputs, RtlOptions(verilog=verilog), plusargs=(plusarg(BUGS[0]),))
    assert program.instructions[found.instruction].kind is Kind.CONV
    place = re.search(r"unit MAC, cycle (\d+); scratch word \d+, byte (\d+)", found.description)
    assert int(place[1]) == found.cycle > 0 and int(place[2]) % PARAMS.cols == 1
    assert f"got {found.got}" in found.description


@pytest.mark.slow
def test_waves_show_the_cycles_around_the_divergence(case, verilog):
    _, program, inputs = case
    found = find_divergence(program, inputs, RtlOptions(verilog=verilog), plusargs=(plusarg(BUGS[0]),))
    result = backend(verilog).observe(program, inputs)
    result = replace(result, inputs=inputs, regions=(result,), first_divergence=found)
    window = choose_window((program,), result)
    assert (window.first, window.last) == (max(0, found.cycle - 500), found.cycle + 500)
