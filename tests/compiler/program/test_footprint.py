"""Footprints against the words of random instructions, counted one by one."""

import pytest

from intloom.compiler.program.footprint import Access, Memory, addresses, footprint
from intloom.hw.spec.fields import DRAM_BITS
from intloom.hw.spec.isa import ConvMode, Instruction, Kind, make
from intloom.hw.spec.params import HardwareParams, preset
from intloom.sim.random_programs.program import random_program
from intloom.sim.random_programs.words import words_of
from tests.support.shapes import SHAPES

_PROGRAMS = 24
HARDWARE = {
    **SHAPES,
    # Blocks of results that are a part of a word.
    "lanes of a word": preset("base").replace(rows=32, axi_data_bits=256, lut_products=0),
}


def words(accesses: list[Access], memory: Memory, write: bool, params: HardwareParams) -> set[int]:
    found = {w for a in accesses if (a.memory, a.write) == (memory, write) for w in addresses(a).tolist()}
    return {w % params.weight_words for w in found} if memory is Memory.WEIGHT else found


def steps_wrap(accesses: list[Access], params: HardwareParams) -> bool:
    """Whether steps leave the memory and return: legal, but the compiler writes no such instruction."""
    sizes = {Memory.SCRATCH: params.scratch_words, Memory.DRAM: 1 << DRAM_BITS}
    return any(a.last >= sizes.get(a.memory, a.last + 1) for a in accesses)


def may_claim_more(i: Instruction, params: HardwareParams) -> bool:
    """Reads of packed pixels: the last tap counts with its dilation, a window outside the tensor with a word of it."""
    if i.kind is not Kind.CONV or i["mode"] != ConvMode.PACKED:
        return False
    end = i["ix0"] + (i["out_w"] - 1) * i["stride_w"] + i["kernel_w"] * params.pixels_per_word
    return i["dilation_w"] > 1 or i["ix0"] < 0 or end > i["in_w"]


@pytest.mark.parametrize("name", HARDWARE)
def test_footprints_are_the_words_that_instructions_read_and_write(name: str, seed: int) -> None:
    params, kinds = HARDWARE[name], set()
    for number in range(_PROGRAMS):
        # Half of the programs are of the kind with the most fields.
        for step in random_program(seed + number, params, [Kind.CONV] * (number % 2)).steps:
            i = step.instruction
            accesses, expected = footprint(i, params), words_of(i, params)
            if steps_wrap(accesses, params):
                continue
            kinds.add(i.kind)
            for memory in Memory:
                for write, counted in ((False, expected.reads), (True, expected.writes)):
                    claimed = words(accesses, memory, write, params)
                    exact = {*counted.get(memory.name.lower(), ())}
                    more = not write and claimed > exact and may_claim_more(i, params)
                    assert claimed == exact or more, (i, memory, write)
    assert kinds >= {Kind.LOAD, Kind.STORE, Kind.CONV}


def test_in_a_ring_each_row_of_a_depthwise_convolution_is_an_access_of_its_own():
    """So that a hazard with another row of the buffer is none."""
    fields = {"a_base": 100, "a_row": 5, "a_ring": 20, "a_row_off": 15, "in_h": 9, "in_w": 5, "out_w": 3}
    kernel = {"kernel_h": 3, "kernel_w": 3}
    *rows, constants, _ = footprint(make(Kind.VDEPTHWISE, **fields, **kernel, b_base=700, out_base=900), preset("base"))
    assert [set(addresses(a).tolist()) for a in rows] == [set(range(n, n + 5)) for n in (115, 100, 105)]
    assert set(addresses(constants).tolist()) == set(range(700, 717))
