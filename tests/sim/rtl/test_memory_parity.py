"""A flipped bit in a local memory ends in an error with `memory_parity`, and in wrong bytes without it."""

import random
import re
from dataclasses import replace

import numpy as np
import pytest

from intloom.common.errors import SimulationError
from intloom.compiler.program.program import Program
from intloom.hw.spec.isa import Instruction, Kind, make
from intloom.hw.spec.params import HardwareParams, preset
from intloom.sim.bench.workload import dense_program
from intloom.sim.random_programs.compare import compare
from intloom.sim.random_programs.program import random_program
from intloom.sim.result import RunResult
from intloom.sim.rtl.backend import RtlBackend
from intloom.sim.rtl.bare import build_bare
from intloom.sim.rtl.fast import FastBench
from intloom.sim.rtl.job import MemorySettings
from intloom.sim.rtl.options import RtlOptions
from intloom.sim.rtl.verilog import verilog_of
from tests.hw.npu.collisions import poison_collisions
from tests.hw.npu.disturbed import simulator
from tests.sim.rtl.flips import Flip, scratch_flip, weight_flip, with_flips
from tests.support.shapes import SHAPES

PLAIN = preset("nano")
PARITY = PLAIN.replace(memory_parity=True)
HARDWARE = {False: PLAIN, True: PARITY}
SIDE = 4
INPUT, OUTPUT, TILES = 0, SIDE * SIDE, PLAIN.channel_words
"""First scratchpad words of input and output, and first weight memory word of the weights."""
_MESSAGE = re.compile(
    r"stopped after \d+ cycles with cause (\w+): unit (\w+) read word (\d+) of the (scratchpad|weight memory)"
)
_MEMORY = MemorySettings()
FASTEST_MEMORY = MemorySettings(read_latency=0, write_latency=0, bandwidth=0)


@pytest.fixture(scope="module")
def edited() -> dict[bool, str]:
    return {parity: with_flips(verilog_of(params), params) for parity, params in HARDWARE.items()}


def _run(verilog: str, program: Program, flip: Flip | None, memory: MemorySettings = _MEMORY) -> RunResult:
    bench = FastBench(plusargs=flip.plusargs() if flip else ())
    return RtlBackend(RtlOptions(bench=bench, verilog=verilog, memory=memory)).run(program, {})


def _program(params: HardwareParams, *body: Instruction) -> Program:
    """A convolution with its loads and its store, or these instructions with the same output."""
    program, _ = dense_program(params, side=SIDE, blocks=1, repeats=1)
    if not body:
        return program
    code = (program.instructions[0], *body, make(Kind.END, wait_store=1))
    layer = replace(program.layers[0], macs=0)
    return replace(program, instructions=code, provenance=(program.provenance[0],) * len(code), layers=(layer,))


def _output(result: RunResult) -> bytes:
    return np.ascontiguousarray(result.outputs["output"]).tobytes()


def _found(verilog: str, program: Program, flip: Flip, memory: MemorySettings = _MEMORY) -> tuple[str, ...]:
    """Cause, unit, word and memory in the error message."""
    with pytest.raises(SimulationError) as raised:
        _run(verilog, program, flip, memory)
    found = _MESSAGE.search(str(raised.value))
    assert found is not None, raised.value
    assert "reset the accelerator and run the program again" in str(raised.value)
    return found.groups()


@pytest.mark.slow
def test_a_flip_ends_in_an_error_with_parity_and_in_wrong_bytes_without(edited: dict[bool, str], seed: int) -> None:
    """In the input, in the weights, and in the output after its last write."""
    rng = random.Random(seed)
    right = {parity: _run(edited[parity], _program(params), None) for parity, params in HARDWARE.items()}
    assert _output(right[False]) == _output(right[True])
    assert right[False].cycles == right[True].cycles
    # The highest bit of an operand or result: no rounding and no clamp hides it at every pixel.
    byte = rng.randrange(PLAIN.word_bytes)
    inner = rng.choice((5, 6, 9, 10))
    tile = 4 * PLAIN.cols + rng.randrange(PLAIN.cols)
    last_write = PLAIN.cols // PLAIN.lanes
    for flips, wanted in (
        (
            [scratch_flip(p, INPUT + inner, byte, 7) for p in (PLAIN, PARITY)],
            ("SCRATCH_PARITY", "MAC", str(INPUT + inner), "scratchpad"),
        ),
        (
            [scratch_flip(p, OUTPUT + inner, byte, 7, last_write) for p in (PLAIN, PARITY)],
            ("SCRATCH_PARITY", "STORE", str(OUTPUT + inner), "scratchpad"),
        ),
        ([weight_flip(TILES + tile, 8 * byte + 7)] * 2, ("WEIGHT_PARITY", "MAC", str(TILES + tile), "weight memory")),
    ):
        wrong = _run(edited[False], _program(PLAIN), flips[0])
        assert _output(wrong) != _output(right[False]), flips[0]
        assert _found(edited[True], _program(PARITY), flips[1]) == wanted


@pytest.mark.slow
def test_flips_of_parity_bits_are_errors(edited: dict[bool, str], seed: int) -> None:
    rng = random.Random(seed)
    byte, word = rng.randrange(PARITY.word_bytes), rng.randrange(SIDE * SIDE)
    found = _found(edited[True], _program(PARITY), scratch_flip(PARITY, word, byte, 8))
    assert found[:3] == ("SCRATCH_PARITY", "MAC", str(word))
    found = _found(edited[True], _program(PARITY), weight_flip(TILES + word, 8 * PARITY.word_bytes))
    assert found[:3] == ("WEIGHT_PARITY", "MAC", str(TILES + word))


@pytest.mark.slow
@pytest.mark.parametrize("words", [1, 2, SIDE * SIDE])
def test_the_last_word_is_checked_before_the_program_is_done(edited: dict[bool, str], words: int) -> None:
    """A store of the flipped word, or a copy by the vector unit, with nothing after it, on the fastest memory."""
    dram = _program(PARITY).tensors[0].address
    load = make(Kind.LOAD, dram=dram, n0=words)
    store = make(Kind.STORE, dram=dram, n0=words)
    copy = make(Kind.VCOPY, wait_load=1, a_x=1, out_w=words, out_h=1, out_base=64)
    last = scratch_flip(PARITY, words - 1, 0, 0)
    for body, unit in (
        ((load, store.with_fields(wait_load=1)), "STORE"),
        ((load, store.with_fields(wait_load=1, local=128), copy), "VEC"),
    ):
        program = _program(PARITY, *body)
        _run(edited[True], program, None, FASTEST_MEMORY)
        found = _found(edited[True], program, last, FASTEST_MEMORY)
        assert found[:3] == ("SCRATCH_PARITY", unit, str(words - 1))


@pytest.mark.slow
def test_random_programs_read_no_word_while_it_is_written(seed: int) -> None:
    """Registers and memories are random before the reset: the programs begin with loads of all words.

    A word that is read while it is written has all bits inverted, even if its data is not used: wrong parity, since
    granules have an odd number of bits.
    """
    params = SHAPES["halves"]
    verilog, memories = poison_collisions(verilog_of(params))
    assert memories >= params.scratch_banks + 1
    poisoned = build_bare(verilog, optimize="-O1", random_start=True, taps=True)
    for number in range(12):
        program = random_program(seed + number, params)
        found = compare(program, poisoned, (0, 300)[number % 2], start_seed=1 + number)
        assert not found.problem, f"seed {program.seed}: {found.problem}"


@pytest.mark.slow
@pytest.mark.nightly
def test_random_programs_take_the_same_cycles(seed: int) -> None:
    """With parity and without."""
    simulators = {p: simulator(p) for p in (SHAPES["halves"], SHAPES["halves"].replace(memory_parity=False))}
    for number in range(4):
        runs = [compare(random_program(seed + number, p), s, (0, 300)[number % 2]) for p, s in simulators.items()]
        assert len({run.cycles for run in runs}) == 1, f"seed {seed + number}"
