"""Tensors are reconstructed completely, even if later tensors overwrite their memory."""

import numpy as np
import pytest

from intloom.compiler.program.program import Role
from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.isa import Kind
from intloom.hw.spec.params import preset
from intloom.sim.backend import IsaBackend, RtlBackend
from intloom.sim.compare.expected_writes import expected_writes
from intloom.sim.golden import run_graph
from intloom.sim.rtl.write_log import Writer
from intloom.sim.tensor_snapshots import tensor_snapshots, tensors_by_last_store
from tests.support.random_graph import random_graph
from tests.support.yolo_graph import yolo_graph


@pytest.fixture(scope="module")
def case():
    graph, maker = yolo_graph(32)
    inputs = maker.random_inputs()
    program = compile_graph(graph, preset("nano"))
    expected = run_graph(graph, inputs, match=program.params.match, keep=True)
    return program, inputs, expected


def test_most_tensors_share_their_memory():
    program = compile_graph(yolo_graph(32)[0], preset("nano"), effort=0)
    shared = [p for p in program.tensors if p.role is Role.SHARED]
    assert len(shared) >= 10
    assert len({p.address for p in shared}) < len(shared)


def same(got, expected):
    assert len(got) >= 60
    for name, array in got.items():
        np.testing.assert_array_equal(array, expected[name], err_msg=name)


def test_the_instruction_simulator_keeps_what_golden_has(case):
    program, inputs, expected = case
    same(IsaBackend(keep_tensors=True).run(program, inputs).tensors, expected)
    assert not IsaBackend().run(program, inputs).tensors


def test_the_tensors_of_random_graphs_are_those_of_golden(seed):
    """Transposed convolutions, enlarged and sliced tensors among them; results in rows of any pitch."""
    kept = 0
    for each in range(seed, seed + 60):
        graph, maker = random_graph(each)
        program, inputs = compile_graph(graph, preset("base")), maker.random_inputs()
        expected = run_graph(graph, inputs, match=program.params.match, keep=True)
        for name, array in IsaBackend(keep_tensors=True).run(program, inputs).tensors.items():
            np.testing.assert_array_equal(array, expected[name], err_msg=f"graph {each}: {name}")
            kept += 1
    assert kept > 150


def log_of(program, inputs):
    """The write log of a perfect accelerator: results of the array in steps of `lanes` bytes, all others in words."""
    params, entries = program.params, []
    for expected in expected_writes(program, inputs):
        step = params.lanes if expected.writer is Writer.MAC else params.rows
        for word in expected.words:
            for low in range(0, params.rows, step):
                mask = (1 << low + step) - (1 << low)
                entries.append((0, expected.writer, word, mask, 0, expected.content[word].copy()))
    kinds = [
        ("cycle", "<u8"),
        *((n, "<u4") for n in ("writer", "word", "mask", "word_high")),
        ("data", "u1", params.rows),
    ]
    return np.array(entries, kinds)


def test_a_write_log_gives_every_tensor_and_a_wrong_byte_shows():
    graph, maker = yolo_graph(32)
    program, inputs = compile_graph(graph, preset("base").replace(scratch_kib=16)), maker.random_inputs()
    expected = run_graph(graph, inputs, match=program.params.match, keep=True)
    log = log_of(program, inputs)
    assert any(i["in_ring"] for i in program.instructions if i.kind is Kind.CONV)
    same(tensor_snapshots(program, log), expected)
    log["data"][np.flatnonzero(log["writer"] == Writer.MAC)[0], 0] ^= 1
    mutated = tensor_snapshots(program, log)
    wrong = [n for n, array in mutated.items() if not np.array_equal(array, expected[n])]
    assert wrong == [program.local_tensors[0].name]


@pytest.mark.slow
def test_rtl_keeps_what_golden_has_and_one_wrong_byte_shows(case):
    program, inputs, expected = case
    same(RtlBackend(keep_tensors=True).run(program, inputs).tensors, expected)
    writes = RtlBackend().observe(program, inputs, log_writes=True).writes.copy()
    stores = np.flatnonzero(writes["writer"] == Writer.STORE)
    tensors = [p.name for completed in tensors_by_last_store(program).values() for p in completed]
    local = {t.name for t in program.local_tensors}
    assert len(local) >= 50
    assert set(tensor_snapshots(program, writes)) == {*tensors, *local}
    writes["data"][stores[0], 0] ^= 1
    mutated = tensor_snapshots(program, writes)
    assert sum(not np.array_equal(mutated[n], expected[n]) for n in tensors) == 1
