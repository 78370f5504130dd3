"""A case of suite `random`: a random program on RTL and instruction simulator."""

from __future__ import annotations

from dataclasses import dataclass

from intloom.hw.spec.isa import disassemble
from intloom.hw.spec.params import HardwareParams
from intloom.sim.random_programs.compare import compare, simulator_of
from intloom.sim.random_programs.program import random_program
from intloom.sim.random_programs.shrink import shrink


@dataclass(frozen=True)
class ProgramOutcome:
    """How a random program ended."""

    message: str
    """The difference and the shrunk program; empty if both simulators agree."""
    cycles: int
    compared_bytes: int
    instructions: int


def run_program_case(seed: int, hardware: HardwareParams, stall_permille: int) -> ProgramOutcome:
    """Run the program of this seed; a failing one is shrunk."""
    program = random_program(seed, hardware)
    simulator = simulator_of(program)
    found = compare(program, simulator, stall_permille)
    count = len(program.steps)
    if not found.problem:
        return ProgramOutcome("", found.cycles, found.compared_bytes, count)
    shrunk, failure = shrink(program, simulator, stall_permille)
    lines = [f"{failure.problem}; the {len(shrunk.steps)} of {count} instructions that are needed:"]
    lines += [disassemble(s.instruction) for s in shrunk.steps]
    return ProgramOutcome("\n".join(lines), found.cycles, found.compared_bytes, count)
