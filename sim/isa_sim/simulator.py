"""The instruction simulator: whole runs, single steps, breakpoints and inspection.

Instructions run one after the other in program order. That gives the accelerator's result for every timing, provided
that waits order all conflicts; so each step also proves, by the same rules as the checker, that no word is used before
its time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from intloom.common.errors import ProgramError, UsageError
from intloom.compiler.program.footprint import Access, Memory, footprint
from intloom.compiler.program.hazards import AccessTracker, Order, waits_of
from intloom.compiler.program.memory import initial_memory, instruction_words, read_outputs, read_place
from intloom.compiler.program.program import Program, Role
from intloom.hw.spec.isa import QUEUED_UNITS, Instruction, Unit, disassemble
from intloom.sim.isa_sim import control, conv, move, vadd, vavg, vcopy, vmax, vmul, vtable
from intloom.sim.isa_sim.machine import Machine, blank_machine
from intloom.sim.isa_sim.registry import semantics

SEMANTICS = (control, conv, move, vadd, vavg, vcopy, vmax, vmul, vtable)
"""Modules that register what instructions do; imported for that."""


class IsaSimulator:
    """Runs one program.

    `check` finds reads of uninitialised words, addresses out of range, waits for later instructions, and races.
    """

    def __init__(self, program: Program, *, check: bool = True) -> None:
        self.program = program
        self.check = check
        self.position = 0
        self._instruction_breaks: set[int] = set()
        self._layer_breaks: set[int] = set()
        self._machine: Machine | None = None
        self._tracker: AccessTracker | None = None
        self._order = Order()

    def reset(self, inputs: Mapping[str, NDArray[np.int8]]) -> None:
        """Prepare to run from the first instruction with these inputs."""
        self._machine = blank_machine(self.program.params, initial_memory(self.program, inputs))
        self.position = 0
        self._order = Order()
        self._tracker = self._fresh_tracker() if self.check else None

    def _fresh_tracker(self) -> AccessTracker:
        program = self.program
        tracker = AccessTracker(program.params, program.memory_words)
        words = -(-len(program.image) // program.params.word_bytes)
        code = instruction_words(len(program.instructions), program.params)
        regions = [(program.image_at, words), (program.instructions_at, code)]
        regions += [(p.address, p.words) for p in program.places if p.role is Role.INPUT]
        for start, count in regions:
            if count:
                tracker.mark_initialised(Access(Memory.DRAM, False, start, ((count, 1),)))
        return tracker

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
        if self._tracker is not None:
            self._check(index, instruction, self._tracker)
        semantics(instruction.kind)(machine, instruction)
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
        """The output tensors as they lie in memory now."""
        return read_outputs(self.program, self._memory())

    def tensor(self, name: str) -> NDArray[np.int8]:
        """A tensor as it lies in memory now."""
        place = next((p for p in self.program.places if p.name == name), None)
        if place is None:
            known = ", ".join(p.name for p in self.program.places)
            raise UsageError(f"tensor {name!r} has no place in memory; those that have: {known}")
        return read_place(self.program, self._memory(), place)

    def _memory(self) -> NDArray[np.uint8]:
        return self.machine.dram.reshape(-1).view(np.uint8)

    def describe(self, index: int) -> str:
        """An instruction with its number and where it comes from."""
        origin = self.program.provenance[index]
        layers = self.program.layers
        place = f" (layer {layers[origin.layer].name!r}, tile {origin.tile})" if 0 <= origin.layer < len(layers) else ""
        return f"instruction {index}{place}: {disassemble(self.program.instructions[index])}"

    def _check(self, index: int, instruction: Instruction, tracker: AccessTracker) -> None:
        waits = waits_of(instruction)
        for unit, count in zip(QUEUED_UNITS, waits, strict=True):
            if count > self._order.count(unit):
                raise self._fault(index, f"waits for {unit.name} instruction {count}, which does not stand before it")
        if instruction.unit is Unit.CONTROL:
            return
        accesses = footprint(instruction, self.program.params)
        self._check_accesses(index, instruction.unit, waits, accesses, tracker)
        self._order.append(instruction.unit, waits)
        tracker.record(instruction.unit, self._order.count(instruction.unit), accesses)

    def _check_accesses(
        self,
        index: int,
        unit: Unit,
        waits: tuple[int, int, int, int],
        accesses: Sequence[Access],
        tracker: AccessTracker,
    ) -> None:
        try:
            conflicts = tracker.conflicts(unit, accesses)
        except ProgramError as error:
            raise self._fault(index, str(error)) from None
        self._check_initialised(index, accesses, tracker)
        known = self._order.known(unit, waits)
        for other in QUEUED_UNITS:
            if conflicts[other] > known[other]:
                raise self._fault(
                    index,
                    f"races with {other.name} instruction {conflicts[other]}, which need not have finished "
                    f"(certain: {known[other]})",
                )

    def _check_initialised(self, index: int, accesses: Iterable[Access], tracker: AccessTracker) -> None:
        for access in accesses:
            word = None if access.write else tracker.uninitialised(access)
            if word is not None:
                raise self._fault(index, f"reads {access.memory.name.lower()} word {word}, which nobody has written")

    def _fault(self, index: int, reason: str) -> ProgramError:
        return ProgramError(f"{self.describe(index)}: {reason}")
