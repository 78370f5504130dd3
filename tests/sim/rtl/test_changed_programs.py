"""A program or constants with changed bits never end as if nothing had happened."""

import random
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from intloom.common.errors import SimulationError
from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.identity import begin
from intloom.hw.spec.isa import INSTRUCTION_BITS, Kind, encode, make
from intloom.hw.spec.params import preset
from intloom.hw.spec.program_check import add_check
from intloom.hw.spec.regs import Cause
from intloom.sim.regress.graphs import GraphMaker
from intloom.sim.rtl.backend import RtlBackend
from intloom.sim.rtl.options import RtlOptions
from tests.hw.npu.disturbed import simulator
from tests.sim.random_programs.short_runs import DONE, Ending, ending
from tests.support.shapes import SHAPES

NANO = preset("nano")
EVERY = SHAPES["nano"]
WORK = (
    make(Kind.LOAD, dram=2048, n0=128),
    make(Kind.LOAD, dram=2304, n0=128, target=1),
    make(Kind.CONV, wait_load=2, in_row=4, in_h=4, in_w=4, kernel_h=2, kernel_w=2, out_h=3, out_w=3, out_base=256,
         out_row=3, zp_in=3),
    make(Kind.VADD, wait_mac=1, wait_load=1, a_base=256, a_row=3, b_row=3, out_base=300, out_h=3, out_w=3, out_row=3,
         m1=3, m2=5, shift=3),
    make(Kind.VMAX, wait_vec=1, a_base=300, a_row=3, in_h=3, in_w=3, kernel_h=2, out_h=2, out_w=3, out_row=3,
         out_base=320),
    make(Kind.STORE, wait_vec=2, dram=3072, local=256, n0=128),
)  # fmt: skip
CODE = add_check(encode(i) for i in (begin(EVERY), *WORK, make(Kind.END, wait_store=1)))
BITS = 8 * len(CODE)
_PARTS = 20


def _run(bits: Sequence[int]) -> Ending | None:
    """A run with these bits changed."""
    word = int.from_bytes(CODE, "little")
    for bit in bits:
        word ^= 1 << bit
    return ending(simulator(EVERY), EVERY, word.to_bytes(len(CODE), "little"), limit=60_000, watchdog=2000)


def _check(changes: list[list[int]]) -> None:
    """Each of these changes ends in an error."""
    assert _run([]) == DONE
    for bits in changes:
        found = _run(bits)
        assert found not in (None, DONE), bits
        if len(bits) == 1:
            assert (found.cause, found.index) == (Cause.PROGRAM_CHECK, bits[0] // INSTRUCTION_BITS), bits


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2, 3])
def test_changed_bits_end_in_an_error(count: int, rng: random.Random) -> None:
    _check([rng.sample(range(BITS), count) for _ in range(40)])


@pytest.mark.evidence
@pytest.mark.parametrize("part", range(_PARTS))
def test_ten_thousand_changes_end_in_an_error(part: int, seed: int) -> None:
    """Every single bit, and random pairs and triples, in parts that can be run one by one."""
    rng = random.Random(seed)
    changes = [[bit] for bit in range(BITS)]
    changes += [rng.sample(range(BITS), rng.choice((2, 3))) for _ in range(10_000 - BITS)]
    _check(changes[part::_PARTS])


def test_a_changed_bit_of_the_constants_ends_in_an_error(rng: random.Random) -> None:
    """Of 12 bits of the constants of a small network each is found; the error names a load."""
    params = NANO.replace(word_code=True, constant_check=True)
    maker = GraphMaker(7)
    graph, inputs = maker.finish(maker.conv(maker.input(4, 5, 5), 8, 3))
    program = compile_graph(graph, params)
    RtlBackend(RtlOptions()).run(program, inputs)
    for bit in rng.sample(range(8 * len(program.image)), 12):

        def flip(memory: NDArray[np.uint8], bit: int = bit) -> None:
            memory[bit // 8] ^= 1 << bit % 8

        with pytest.raises(SimulationError, match="CONSTANT_CHECK") as error:
            RtlBackend(RtlOptions(), inject=flip).run(program, inputs)
        assert " LOAD" in str(error.value)
