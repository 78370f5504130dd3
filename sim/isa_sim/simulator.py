"""The instruction simulator: whole runs, single steps and inspection.

Instructions run one after the other in program order. That gives the accelerator's result for every timing, provided
that waits order all hazards; so each step also checks the instruction with `SoundnessChecker`.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from intloom.common.errors import UsageError
from intloom.compiler.program.memory import initial_memory, read_outputs, read_tensor
from intloom.compiler.program.program import Program
from intloom.compiler.program.soundness import SoundnessChecker
from intloom.sim.isa_sim.machine import Machine, blank_machine
from intloom.sim.isa_sim.registry import SEMANTICS


class IsaSimulator:
    """Runs one program.

    `check` finds reads of uninitialized words, addresses out of range, waits for later instructions, and races.
    """

    def __init__(self, program: Program, *, check: bool = True) -> None:
        self.program = program
        self.check = check
        self.position = 0
        """Number of the next instruction."""
        self._machine: Machine | None = None
        self._checker: SoundnessChecker | None = None

    def reset(self, inputs: Mapping[str, NDArray[np.int8]]) -> None:
        """Prepare to run from the first instruction with these inputs."""
        self._machine = blank_machine(self.program.params, initial_memory(self.program, inputs))
        self.position = 0
        self._checker = SoundnessChecker(self.program) if self.check else None

    @property
    def machine(self) -> Machine:
        """Memories and tables as they are now; changes to its arrays take effect."""
        if self._machine is None:
            raise UsageError("the simulator holds no state yet: call reset(inputs) or run(inputs) first")
        return self._machine

    @property
    def finished(self) -> bool:
        """Whether all instructions have run."""
        return self.position >= len(self.program.instructions)

    def run(self, inputs: Mapping[str, NDArray[np.int8]]) -> dict[str, NDArray[np.int8]]:
        """All outputs for these inputs."""
        self.reset(inputs)
        while not self.finished:
            self.step()
        return self.outputs()

    def step(self) -> int:
        """Run one instruction; gives its number.

        Raises
        ------
        ProgramError
            The instruction would misbehave on the accelerator; the message names it and why.
        """
        if self.finished:
            raise UsageError("the program has ended: call reset(inputs) to run it again")
        index = self.position
        instruction = self.program.instructions[index]
        machine = self.machine
        # Before the execution, so that the machine still shows the state in which the rule was broken.
        if self._checker is not None:
            self._checker.step(index)
        SEMANTICS[instruction.kind](machine, instruction)
        self.position += 1
        return index

    def outputs(self) -> dict[str, NDArray[np.int8]]:
        """The output tensors in memory."""
        return read_outputs(self.program, self._memory())

    def tensor(self, name: str) -> NDArray[np.int8]:
        """A tensor in memory."""
        tensor = next((p for p in self.program.tensors if p.name == name), None)
        if tensor is None:
            known = ", ".join(p.name for p in self.program.tensors)
            raise UsageError(f"tensor {name!r} is not stored in memory; stored are {known}")
        return read_tensor(self.program, self._memory(), tensor)

    def _memory(self) -> NDArray[np.uint8]:
        return self.machine.dram.reshape(-1).view(np.uint8)
