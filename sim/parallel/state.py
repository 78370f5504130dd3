"""States of the instruction simulator at chosen instructions of a program."""

from collections.abc import Iterable, Iterator
from copy import deepcopy

from intloom.compiler.program.program import Program
from intloom.sim.isa_sim import IsaSimulator
from intloom.sim.isa_sim.machine import Machine
from intloom.sim.result import Arrays


def states(program: Program, inputs: Arrays, positions: Iterable[int]) -> Iterator[tuple[int, Machine]]:
    """Each of `positions`, in ascending order, with a copy of the machine before its instruction.

    There, all earlier instructions have finished.
    """
    simulator = IsaSimulator(program, check=False)
    simulator.reset(inputs)
    for position in sorted(set(positions)):
        while simulator.position < position:
            simulator.step()
        yield position, deepcopy(simulator.machine)
