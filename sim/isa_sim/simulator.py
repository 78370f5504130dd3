"""The instruction simulator: whole runs, single steps, breakpoints and inspection.

Instructions run one after the other in program order. That gives the accelerator's result for every timing, provided
that waits order all hazards; so each step also checks the instruction with `SoundnessChecker`.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from intloom.common.errors import UsageError
from intloom.compiler.program.memory import initial_memory, read_outputs, read_tensor
from intloom.compiler.program.program import Program
from intloom.compiler.program.soundness import SoundnessChecker, describe
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
        self._instruction_breaks: set[int] = set()
        self._layer_breaks: set[int] = set()
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
        """All outputs for these inputs; breakpoints do not stop it."""
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

    def add_breakpoint(self, *, instruction: int | None = None, layer: str | None = None) -> None:
        """Stop `resume` before an instruction, or wherever a stretch of a layer's instructions starts."""
        if (instruction is None) == (layer is None):
            raise UsageError("a breakpoint must name an instruction or a layer, and not both")
        if instruction is not None:
            if not 0 <= instruction < len(self.program.instructions):
                last = len(self.program.instructions) - 1
                raise UsageError(f"a breakpoint must be at instruction 0 to {last}, not {instruction}")
            self._instruction_breaks.add(instruction)
            return
        names = [k.name for k in self.program.layers]
        if layer not in names:
            raise UsageError(f"a breakpoint must name a layer of the program, not {layer!r}: it has {', '.join(names)}")
        self._layer_breaks.add(names.index(layer))

    def clear_breakpoints(self) -> None:
        """Forget all breakpoints."""
        self._instruction_breaks.clear()
        self._layer_breaks.clear()

    def resume(self) -> int | None:
        """Run to the next breakpoint; gives the number of the instruction there, or None at the program's end."""
        first = True
        while not self.finished:
            # The first instruction is not tested, or `resume` would never leave a breakpoint.
            if not first and self._stops_at(self.position):
                return self.position
            self.step()
            first = False
        return None

    def _stops_at(self, index: int) -> bool:
        if index in self._instruction_breaks:
            return True
        layer = self.program.provenance[index].layer
        return layer in self._layer_breaks and self.program.provenance[index - 1].layer != layer

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

    def describe(self, index: int) -> str:
        """An instruction with its number and its layer."""
        return describe(self.program, index)
