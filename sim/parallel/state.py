"""States of the instruction simulator at chosen instructions of a program."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.program.program import Program
from intloom.sim.isa_sim import IsaSimulator
from intloom.sim.result import Arrays

Words = NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class State:
    """What the accelerator holds before an instruction, when all earlier ones have finished."""

    position: int
    dram: Words
    scratch: Words
    weights: Words
    mac_table: NDArray[np.int8]
    vector_table: NDArray[np.int8]
    exponentials: NDArray[np.uint8]


def states(program: Program, inputs: Arrays, positions: Iterable[int]) -> Iterator[State]:
    """The state before each instruction in `positions`, in ascending order."""
    simulator = IsaSimulator(program, check=False)
    simulator.reset(inputs)
    for position in sorted(set(positions)):
        while simulator.position < position:
            simulator.step()
        machine = simulator.machine
        yield State(
            position,
            machine.dram.copy(),
            machine.scratch.copy(),
            machine.weights.copy(),
            machine.mac_table.copy(),
            machine.vector_table.copy(),
            machine.exponentials.copy(),
        )
