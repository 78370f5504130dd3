"""The memory map: no word holds two things at once, and the peak fits."""

from collections import Counter

import numpy as np
import pytest

from intloom.compiler.program.footprint import Memory, addresses, footprint
from intloom.compiler.program.memory_map import memory_map, memory_size, peak_words
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


def lives(program: Program, memory: Memory) -> Counter[tuple[int, int, int]]:
    """Each word with the instruction that writes it and the end of the last that reads it, word by word."""
    size, lives, state = memory_size(program, memory), Counter[tuple[int, int, int]](), dict[int, list[int]]()
    for index, instruction in enumerate(program.instructions):
        accesses = [a for a in footprint(instruction, program.params) if a.memory is memory]
        for access in sorted(accesses, key=lambda a: a.write):
            for word in {int(w) % size for w in addresses(access)}:
                if access.write:
                    lives.update([(word, *state[word])] if word in state else [])
                    state[word] = [index, index + 1]
                elif word in state:
                    state[word][1] = index + 1
    lives.update((word, *life) for word, life in state.items())
    return lives


@pytest.mark.parametrize("memory", [Memory.SCRATCH, Memory.WEIGHT])
def test_words_are_live_from_their_write_to_their_last_read(program, memory):
    expected = lives(program, memory)
    extents = [e for e in memory_map(program) if e.memory is memory]
    assert Counter((word, e.first, e.last) for e in extents for word in range(e.start, e.stop)) == expected
    births = Counter(first for _, first, _ in expected.elements())
    deaths = Counter(last for _, _, last in expected.elements())
    used = np.cumsum([births[k] - deaths[k] for k in range(len(program.instructions) + 1)])
    assert peak_words(program, memory) == used.max()


def test_what_moves_to_and_from_dram_is_live_there(program):
    used = np.zeros((len(program.instructions), program.memory_words), bool)
    for e in memory_map(program):
        if e.memory is Memory.DRAM:
            used[e.first : e.last, e.start : e.stop] = True
    for index, instruction in enumerate(program.instructions):
        for access in footprint(instruction, program.params):
            assert access.memory is not Memory.DRAM or used[index, addresses(access)].all(), index
    assert peak_words(program, Memory.DRAM) == used.sum(axis=1).max()
