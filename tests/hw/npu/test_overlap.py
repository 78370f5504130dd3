"""The four units at once: MAC, vector and both directions of DMA overlap, results equal and the array stays busy."""

from pathlib import Path

import numpy as np
import pytest

from intloom.hw.spec import isa
from intloom.hw.spec.isa import Instruction, Unit
from intloom.hw.spec.params import HardwareParams, preset
from intloom.hw.spec.program_check import add_check
from intloom.sim.host.run_program import HostReport
from intloom.sim.isa_sim.machine import blank_machine
from intloom.sim.isa_sim.registry import SEMANTICS
from intloom.sim.rtl.fast import FastBench
from intloom.sim.rtl.job import Job, MemorySettings, RunFiles
from intloom.sim.rtl.status import read_pulses
from intloom.sim.rtl.verilog import verilog_of
from tests.hw.npu.collisions import poison_collisions

SIDE, PADDED, BLOCKS, CONVS = 40, 42, 2, 2
INPUT, OUTPUTS, EXTRA = 0, BLOCKS * PADDED**2, BLOCKS * (PADDED**2 + SIDE**2)
SIDE_WORDS = 350
"""Words in the scratchpad: the input, the outputs, and an area of twice two blocks for the other units."""
MEMORY_WORDS = 1 << 15
SOURCE, WEIGHTS, TARGET = 0x1000, 0x3000, 0x4000
"""Words in memory."""


def _convolutions(first_wait: int) -> list[Instruction]:
    shape = {"in_h": PADDED, "in_w": PADDED, "in_row": PADDED, "in_plane": PADDED**2, "kernel_h": 3, "kernel_w": 3}
    shape |= {"in_blocks": BLOCKS, "out_blocks": BLOCKS, "out_h": SIDE, "out_w": SIDE, "out_row": SIDE}
    return [
        isa.make("CONV", wait_load=first_wait, in_base=INPUT, out_base=OUTPUTS, out_plane=SIDE**2, **shape, zp_out=k)
        for k in range(CONVS)
    ]


def _side_work(rounds: int, loads: int) -> list[Instruction]:
    """Rounds of a load, a vector sum of what came, and a store of the sums, each waiting for the one before."""
    work = []
    words = SIDE_WORDS
    for k in range(rounds):
        spot = EXTRA + (k % 2) * 2 * words
        shape = {"out_h": 1, "out_w": words, "out_row": words, "blocks": 1, "out_plane": words}
        work += [
            isa.make("LOAD", dram=SOURCE + 100 * k, local=spot, n0=words, wait_vec=max(0, k - 1)),
            isa.make(
                "VADD", wait_load=loads + k + 1, wait_store=max(0, k - 1), a_base=spot, a_row=words, b_base=spot,
                b_row=words, out_base=spot + words, **shape, m1=3, m2=2, c=5, shift=3,
            ),
            isa.make("STORE", dram=TARGET + words * k, local=spot + words, n0=words, wait_vec=k + 1),
        ]  # fmt: skip
    return work


def _channel_parameters(params: HardwareParams, rng: np.random.Generator) -> bytes:
    """Biases and scales of one output block: sums of some thousands become bytes of every size."""
    biases = rng.integers(-(1 << 16), 1 << 16, params.cols, dtype=np.int32)
    scales = rng.integers(1 << 23, 1 << 24, params.cols, dtype=np.uint32) | np.uint32(36 << 24)
    return biases.tobytes() + scales.tobytes()


def _image(params: HardwareParams, program: list[Instruction], seed: int) -> bytes:
    """Memory: the program, then noise everywhere but in the channel parameters."""
    rng = np.random.default_rng(seed)
    image = bytearray(rng.bytes(MEMORY_WORDS * params.word_bytes))
    code = add_check(map(isa.encode, program))
    image[: len(code)] = code
    for block in range(BLOCKS):
        at = (WEIGHTS + block * (params.channel_words + 9 * BLOCKS * params.tile_words)) * params.word_bytes
        constants = _channel_parameters(params, rng)
        image[at : at + len(constants)] = constants
    return bytes(image)


def _program(params: HardwareParams) -> list[Instruction]:
    weights = BLOCKS * (params.channel_words + 9 * BLOCKS * params.tile_words)
    loads = [
        isa.make("LOAD", dram=SOURCE, local=INPUT, n0=BLOCKS * PADDED**2),
        isa.make("LOAD", dram=WEIGHTS, local=0, n0=weights, target=isa.LoadTarget.WEIGHT),
    ]
    rounds = 8
    out = isa.make("STORE", dram=TARGET + 0x2000, local=OUTPUTS, n0=BLOCKS * SIDE**2, wait_mac=CONVS)
    begin = isa.make("BEGIN", version=isa.ISA_VERSION, fingerprint=params.fingerprint())
    work = _side_work(rounds, len(loads))
    return [begin, *loads, *_convolutions(len(loads)), *work, out, isa.make("END", wait_store=rounds + 1)]


def _run(
    params: HardwareParams, program: list[Instruction], memory: bytes, folder: Path, verilog: str
) -> tuple[HostReport, bytes]:
    bench = FastBench()
    simulator = bench.build(verilog)
    files = RunFiles(folder)
    files.memory.write_bytes(memory)
    job = Job(
        word_bytes=params.word_bytes, memory_words=MEMORY_WORDS, program_word=0, instructions=len(program),
        limit=2_000_000, memory=MemorySettings(read_latency=100),
    )  # fmt: skip
    result = bench.run(simulator, job, files)
    return result, files.memory.read_bytes()


@pytest.mark.slow
def test_dma_and_vector_work_hide_behind_a_busy_array(tmp_path: Path, seed: int) -> None:
    params = preset("base")
    program = _program(params)
    image = _image(params, program, seed)
    result, memory = _run(params, program, image, tmp_path, verilog_of(params))
    _check(params, program, image, result, memory)

    pulses = read_pulses(RunFiles(tmp_path).trace)
    started, done = pulses.started, pulses.done
    first, last = int(started[Unit.MAC][0]), int(done[Unit.MAC][-1])
    share = result.counters["MAC_BUSY"] / (last - first)
    print(f"array busy {share:.4f} of {last - first} cycles")
    assert share >= 0.98
    for unit in (Unit.LOAD, Unit.VEC, Unit.STORE):
        during = [t for t in done[unit] if first < int(t) < last]
        assert len(during) >= 8, f"{unit.name} must work while the array does"


@pytest.mark.slow
def test_no_word_is_read_while_it_is_written(tmp_path: Path, seed: int) -> None:
    """All units at once, on memories that answer such a read with wrong data."""
    params = preset("base")
    program = _program(params)
    image = _image(params, program, seed)
    verilog, memories = poison_collisions(verilog_of(params))
    assert memories >= params.scratch_banks + len(("weights", "queues", "fetch"))
    result, memory = _run(params, program, image, tmp_path, verilog)
    _check(params, program, image, result, memory)


def _check(params: HardwareParams, program: list[Instruction], image: bytes, result: HostReport, memory: bytes) -> None:
    """The program ended well, and memory is as the instruction simulator leaves it."""
    assert result.ended == "interrupt"
    assert result.status["done"]
    assert not result.status["error"]
    machine = blank_machine(params, np.frombuffer(image, np.uint8).copy())
    for instruction in program:
        SEMANTICS[instruction.kind](machine, instruction)
    expected = np.frombuffer(machine.dram.tobytes(), np.uint8)
    different = np.flatnonzero(expected != np.frombuffer(memory, np.uint8))
    assert different.size == 0, (
        f"{different.size} bytes differ, the first in word {different[0] // params.word_bytes:#x}"
    )
    assert len(set(memory[(TARGET + 0x2000) * params.word_bytes :][:4096])) > 100, "results must not be all the same"
