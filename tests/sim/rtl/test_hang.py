"""A hang names the unit without progress, and ends after a time that follows from the program."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from intloom.hw.spec import regs
from intloom.hw.spec.identity import begin
from intloom.hw.spec.isa import Kind, Unit, encode, make
from intloom.hw.spec.params import preset
from intloom.hw.spec.program_check import add_check
from intloom.hw.spec.regs import Cause
from intloom.sim.bench.workload import dense_program
from intloom.sim.rtl.backend import default_watchdog
from intloom.sim.rtl.bare import build_bare, run_bare
from intloom.sim.rtl.job import Job, MemorySettings, RunFiles
from intloom.sim.rtl.verilog import verilog_of

NANO = preset("nano")
WATCHDOG = 2000
STORE = make(Kind.STORE, dram=512, n0=4)
LOAD = make(Kind.LOAD, dram=512, n0=4)


def _error(folder: Path, *work) -> tuple[Cause, Unit, int]:
    """The error of a program on a memory that does not answer writes."""
    code = add_check(encode(i) for i in (begin(NANO), *work, make(Kind.END)))
    files = RunFiles(folder)
    memory = np.zeros(4096, np.uint8)
    memory[: len(code)] = np.frombuffer(code, np.uint8)
    files.memory.write_bytes(memory.tobytes())
    job = Job(
        word_bytes=NANO.word_bytes,
        memory_words=len(memory) // NANO.word_bytes,
        program_word=0,
        instructions=len(work) + 2,
        fingerprint=NANO.fingerprint(),
        limit=20 * WATCHDOG,
        watchdog=WATCHDOG,
        memory=MemorySettings(write_latency=10 * WATCHDOG),
        registers=("STATUS", "ERROR_INDEX"),
    )
    result = run_bare(build_bare(verilog_of(NANO), optimize="-O1"), job, files)
    assert result.finished
    status, index = result.registers
    fields = regs.unpack("STATUS", status)
    return Cause(fields["cause"]), Unit(fields["unit"]), index


@pytest.mark.slow
@pytest.mark.parametrize(
    ("work", "unit", "index"),
    [
        # The older instruction waits for the STORE that gets no response.
        ((make(Kind.VCOPY, wait_store=1), STORE), Unit.STORE, 2),
        ((LOAD, LOAD.with_fields(wait_store=1), make(Kind.VCOPY, wait_load=2), STORE), Unit.STORE, 4),
        # All wait: the oldest is named.
        ((LOAD, make(Kind.VCOPY, wait_store=1), STORE.with_fields(wait_vec=1)), Unit.VEC, 2),
    ],
)
def test_a_hang_names_the_unit_without_progress(tmp_path: Path, work, unit: Unit, index: int) -> None:
    assert _error(tmp_path, *work) == (Cause.WATCHDOG, unit, index)


def test_the_default_watchdog_follows_the_longest_instruction_and_the_memory() -> None:
    short, _ = dense_program(NANO, side=4, blocks=1, repeats=1)
    long, _ = dense_program(NANO, side=16, blocks=4, repeats=1)
    usual = MemorySettings()
    assert default_watchdog(short, usual) < 20_000
    assert default_watchdog(long, usual) > 4 * 16 * 16 * 9 * 16
    slow = MemorySettings(read_latency=10_000, bandwidth=0.001, stall_permille=900)
    assert default_watchdog(short, slow) > 40_000 + 64_000
