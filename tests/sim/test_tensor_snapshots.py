"""Tensors are reconstructed completely, even if later tensors overwrite their memory."""

import numpy as np
import pytest

from intloom.compiler.program.program import Role
from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.params import preset
from intloom.sim.backend import IsaBackend, RtlBackend
from intloom.sim.golden import run_graph
from intloom.sim.rtl.write_log import Writer
from intloom.sim.tensor_snapshots import tensor_snapshots, tensors_by_last_store
from tests.support.yolo_graph import yolo_graph


@pytest.fixture(scope="module")
def case():
    graph, maker = yolo_graph(32)
    inputs = maker.random_inputs()
    program = compile_graph(graph, preset("nano"), effort=0)
    expected = run_graph(graph, inputs, match=program.params.match, keep=True)
    return program, inputs, expected


def test_most_tensors_share_their_memory(case):
    program, _, _ = case
    shared = [p for p in program.tensors if p.role is Role.SHARED]
    assert len(shared) >= 10
    assert len({p.address for p in shared}) < len(shared)


def same(got, expected):
    assert len(got) >= 10
    for name, array in got.items():
        np.testing.assert_array_equal(array, expected[name], err_msg=name)


def test_the_instruction_simulator_keeps_what_golden_has(case):
    program, inputs, expected = case
    same(IsaBackend(keep_tensors=True).run(program, inputs).tensors, expected)
    assert not IsaBackend().run(program, inputs).tensors


@pytest.mark.slow
def test_rtl_keeps_what_golden_has_and_one_wrong_byte_shows(case):
    program, inputs, expected = case
    same(RtlBackend(keep_tensors=True).run(program, inputs).tensors, expected)
    writes = RtlBackend().observe(program, inputs, log_writes=True).writes.copy()
    stores = np.flatnonzero(writes["writer"] == Writer.STORE)
    tensors = [p.name for completed in tensors_by_last_store(program).values() for p in completed]
    assert set(tensor_snapshots(program, writes)) == set(tensors)
    writes["data"][stores[0], 0] ^= 1
    mutated = tensor_snapshots(program, writes)
    assert sum(not np.array_equal(mutated[n], expected[n]) for n in tensors) == 1
