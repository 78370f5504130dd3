"""Shrinks a failing random program to the instructions that are needed for the failure."""

from intloom.sim.random_programs.compare import Comparison, IllegalProgramError, compare
from intloom.sim.random_programs.program import RandomProgram
from intloom.sim.rtl.build import Build


def shrink(program: RandomProgram, simulator: Build, stall_permille: int = 0) -> tuple[RandomProgram, Comparison]:
    """The smallest failing program found by cutting its end and then leaving out single instructions."""

    def run(candidate: RandomProgram) -> Comparison:
        try:
            return compare(candidate, simulator, stall_permille)
        except IllegalProgramError:
            return Comparison("")

    passes, fails = 0, len(program.steps)
    failure = run(program)
    # The shortest failing prefix: its last instruction is the first one whose results differ.
    while fails - passes > 1:
        middle = (passes + fails) // 2
        comparison = run(program.with_steps(program.steps[:middle]))
        if comparison.problem:
            fails, failure = middle, comparison
        else:
            passes = middle
    steps = list(program.steps[:fails])
    for at in reversed(range(len(steps) - 1)):
        comparison = run(program.with_steps(steps[:at] + steps[at + 1 :]))
        if comparison.problem:
            failure = comparison
            del steps[at]
    return program.with_steps(steps), failure
