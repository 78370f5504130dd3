"""The memory map: no word holds two things at once, and the peak fits."""

import numpy as np
import pytest

from intloom.compiler.program.footprint import Memory
from intloom.compiler.program.memory_map import memory_map, peak_words
from intloom.compiler.program.program import Program, Role
from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.params import preset
from tests.support.yolo_graph import yolo_graph


@pytest.fixture(scope="module")
def program() -> Program:
    return compile_graph(yolo_graph(64)[0], preset("base").replace(scratch_kib=16))


@pytest.mark.parametrize("memory", list(Memory))
def test_no_word_holds_two_things_at_once(program, memory):
    p = program.params
    size = {Memory.SCRATCH: p.scratch_words, Memory.WEIGHT: p.weight_words, Memory.DRAM: program.memory_words}[memory]
    busy_until = np.zeros(size, np.int64)
    extents = [e for e in memory_map(program) if e.memory is memory]
    assert extents
    for e in extents:
        assert 0 <= e.start < e.stop <= size
        assert e.first < e.last
        assert (busy_until[e.start : e.stop] <= e.first).all(), e
        busy_until[e.start : e.stop] = e.last


def test_dram_holds_constants_instructions_and_tensors(program):
    labels = {e.label for e in memory_map(program) if e.memory is Memory.DRAM}
    fixed = {"constants", "instructions", *(p.name for p in program.tensors if p.role is not Role.SHARED)}
    shared = {p.name for p in program.tensors if p.role is Role.SHARED}
    # A tensor inside another one's buffer has that one's name. A tensor that is stored in part only has no memory.
    assert fixed <= labels
    assert labels & shared


def test_peak_is_between_the_largest_extent_and_the_memory(program):
    largest = max(e.stop - e.start for e in memory_map(program) if e.memory is Memory.SCRATCH)
    assert largest <= peak_words(program, Memory.SCRATCH) <= program.params.scratch_words
