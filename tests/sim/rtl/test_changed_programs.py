"""A program or constants with changed bits never end as if nothing had happened."""

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from intloom.common.errors import SimulationError
from intloom.compiler.schedule import compile_graph
from intloom.hw.spec import regs
from intloom.hw.spec.identity import begin
from intloom.hw.spec.isa import INSTRUCTION_BITS, Kind, encode, make
from intloom.hw.spec.params import preset
from intloom.hw.spec.program_check import add_check
from intloom.hw.spec.regs import Cause
from intloom.sim.regress.graphs import Maker, Window
from intloom.sim.rtl.backend import RtlBackend
from intloom.sim.rtl.bare import build_bare, run_bare
from intloom.sim.rtl.job import Job, RunFiles
from intloom.sim.rtl.options import RtlOptions
from intloom.sim.rtl.verilog import verilog_of
from tests.sim.random_programs.extremes import NANO as EVERY

NANO = preset("nano")
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


def _run(folder: Path, bits: list[int]) -> tuple[str, int, bytes]:
    """A run with these bits changed: cause or `done`, index of the instruction, memory behind the program."""
    word = int.from_bytes(CODE, "little")
    for bit in bits:
        word ^= 1 << bit
    files = RunFiles(folder)
    memory = np.random.default_rng(1).integers(0, 256, 1 << 14, dtype=np.uint8)
    memory[: len(CODE)] = np.frombuffer(word.to_bytes(len(CODE), "little"), np.uint8)
    files.memory.write_bytes(memory.tobytes())
    job = Job(
        word_bytes=EVERY.word_bytes,
        memory_words=len(memory) // EVERY.word_bytes,
        program_word=0,
        instructions=len(WORK) + 2,
        limit=60_000,
        watchdog=2000,
        registers=("STATUS", "ERROR_INDEX"),
    )
    result = run_bare(build_bare(verilog_of(EVERY), optimize="-O1", taps=True), job, files)
    assert result.finished
    status = regs.unpack("STATUS", result.registers[0])
    ending = Cause(status["cause"]).name if status["error"] else "done"
    return ending, result.registers[1], files.memory.read_bytes()[len(CODE) :]


def _endings(folder: Path, changes: list[list[int]]) -> Counter[str]:
    ending, _, _ = _run(folder, [])
    assert ending == "done"
    found: Counter[str] = Counter()
    for bits in changes:
        ending, index, _ = _run(folder, bits)
        found[ending] += 1
        if len(bits) == 1:
            assert (ending, index) == ("PROGRAM_CHECK", bits[0] // INSTRUCTION_BITS), bits
    return found


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2, 3])
def test_changed_bits_end_in_an_error(tmp_path: Path, count: int, seed: int) -> None:
    rng = random.Random(seed)
    assert _endings(tmp_path, [rng.sample(range(BITS), count) for _ in range(40)])["done"] == 0


@pytest.mark.evidence
@pytest.mark.parametrize("part", range(_PARTS))
def test_ten_thousand_changes_end_in_an_error(tmp_path: Path, part: int, seed: int) -> None:
    """Every single bit, and random pairs and triples, in parts that can be run one by one."""
    rng = random.Random(seed)
    changes = [[bit] for bit in range(BITS)]
    changes += [rng.sample(range(BITS), rng.choice((2, 3))) for _ in range(10_000 - BITS)]
    assert _endings(tmp_path, changes[part::_PARTS])["done"] == 0


def test_a_changed_bit_of_the_constants_ends_in_an_error(rng: random.Random) -> None:
    """Of 25 bits of the constants of a small network each is found; the error names a load."""
    params = NANO.replace(word_code=True, constant_check=True)
    maker = Maker(7)
    graph, inputs = maker.finish(maker.convolve(maker.input(4, 5, 5), 8, Window(3, 1, 1)))
    program = compile_graph(graph, params)
    RtlBackend(RtlOptions()).run(program, inputs)
    for bit in rng.sample(range(8 * len(program.image)), 25):

        def flip(memory: NDArray[np.uint8], bit: int = bit) -> None:
            memory[bit // 8] ^= 1 << bit % 8

        with pytest.raises(SimulationError, match="CONSTANT_CHECK") as error:
            RtlBackend(RtlOptions(), inject=flip).run(program, inputs)
        assert " LOAD" in str(error.value)
