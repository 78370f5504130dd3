"""A case of the suites `random` and `soak`: a random program on RTL and instruction simulator, or with a fault."""

from dataclasses import dataclass

from intloom.hw.spec.isa import disassemble
from intloom.hw.spec.params import HardwareParams
from intloom.sim.random_programs.compare import compare, simulator_of
from intloom.sim.random_programs.faults import program_fault, run_with_fault
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


def run_program_case(seed: int, hardware: HardwareParams, stall_permille: int, fault: str = "") -> ProgramOutcome:
    """Run the program of this seed; a failing one is shrunk. With a fault it must end in the fault's error."""
    program = random_program(seed, hardware)
    simulator = simulator_of(program)
    if fault:
        ended = run_with_fault(program, simulator, program_fault(fault, program), stall_permille)
        return ProgramOutcome(ended.problem, ended.cycles, 0, len(program.steps))
    comparison = compare(program, simulator, stall_permille)
    count = len(program.steps)
    if not comparison.problem:
        return ProgramOutcome("", comparison.cycles, comparison.compared_bytes, count)
    shrunk, failure = shrink(program, simulator, stall_permille)
    lines = [f"{failure.problem}; the {len(shrunk.steps)} of {count} instructions that are needed:"]
    lines += [disassemble(s.instruction) for s in shrunk.steps]
    return ProgramOutcome("\n".join(lines), comparison.cycles, comparison.compared_bytes, count)
