"""Faults of random programs end in their own error, and a wrong error is a problem."""

from dataclasses import replace

import pytest

from intloom.common.errors import UsageError
from intloom.hw.spec.isa import INSTRUCTION_BYTES
from intloom.hw.spec.regs import Cause
from intloom.sim.random_programs.faults import PROGRAM_FAULTS, program_fault, run_with_fault
from intloom.sim.random_programs.program import random_program
from tests.hw.npu.disturbed import simulator
from tests.support.shapes import SHAPES

EVERY = SHAPES["halves"]
SEEDS = 3


def test_faults_lie_where_they_must() -> None:
    programs = [random_program(seed, EVERY) for seed in range(20)]
    for program in programs:
        instructions = program.instructions()
        found = {name: program_fault(name, program) for name in PROGRAM_FAULTS}
        assert found == {name: program_fault(name, program) for name in PROGRAM_FAULTS}
        assert found["changed-bit"].bit // 8 // INSTRUCTION_BYTES == found["changed-bit"].index < len(instructions)
        assert found["fetch-error"].index < len(instructions)
        for name, word in (("read-error", program.image_word), ("write-error", program.result_word)):
            moved = instructions[found[name].index]
            assert 0 <= found[name].error.word - moved["dram"] < moved["n0"]
            assert found[name].error.word >= word
    assert {program_fault("read-error", p).index for p in programs} == {1, 2}
    with pytest.raises(UsageError, match="changed-bit, fetch-error"):
        program_fault("other", programs[0])


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAM_FAULTS)
def test_a_fault_ends_in_its_error(name: str, seed: int) -> None:
    for number in range(SEEDS):
        program = random_program(seed + number, EVERY)
        fault = program_fault(name, program)
        stalls = (0, 300)[number % 2]
        found = run_with_fault(program, simulator(EVERY), fault, stalls)
        assert not found.problem, f"seed {program.seed}: {found.problem}"
        other = replace(fault, index=fault.index + 1)
        assert "but ended with" in run_with_fault(program, simulator(EVERY), other, stalls).problem


@pytest.mark.slow
def test_a_program_without_the_fault_is_a_problem() -> None:
    program = random_program(1, EVERY)
    fault = replace(program_fault("read-error", program), error=None)
    found = run_with_fault(program, simulator(EVERY), fault)
    assert found.problem.endswith("but ended with no error")
    assert Cause.READ_SLVERR.name in found.problem or Cause.READ_DECERR.name in found.problem
