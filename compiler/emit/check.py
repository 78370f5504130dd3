"""Proves a program sound from its instructions alone: whatever the timing, it ends and computes one result.

Rules, each checked for every instruction:

1. Waits name only earlier instructions; so the oldest unfinished instruction can always run and nothing can deadlock.
2. Every word read was written by an earlier instruction or holds an input or a constant.
3. Every conflict (a read of what another wrote, a write of what another read or wrote) is ordered by waits or by the
   order inside a unit; so buffers that share memory are never live together.
4. Addresses are inside their memories, and stores touch neither constants, inputs nor instructions.
5. A table is used only when one has been loaded.
6. The program starts with `BEGIN`, ends with `END`, and `END` stands nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable

from intloom.common.errors import ProgramError
from intloom.compiler.program.footprint import Access, Memory, footprint
from intloom.compiler.program.hazards import NOTHING, AccessTracker, Counts, Order, waits_of
from intloom.compiler.program.memory import instruction_words
from intloom.compiler.program.program import Program, Role
from intloom.hw.spec.isa import QUEUED_UNITS, Instruction, Kind, TableUse, Unit, disassemble


def describe(program: Program, index: int) -> str:
    """An instruction with its number and provenance, for messages."""
    origin = program.provenance[index] if index < len(program.provenance) else None
    where = ""
    if origin is not None and 0 <= origin.layer < len(program.layers):
        note = f", {origin.note}" if origin.note else ""
        where = f" (layer {program.layers[origin.layer].name!r}, tile {origin.tile}{note})"
    return f"instruction {index}{where}: {disassemble(program.instructions[index])}"


class _Checker:
    """State of the sweep over a program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.order = Order()
        self.tracker = AccessTracker(program.params, program.memory_words)
        self.fixed = _fixed_regions(program)
        for start, words in self.fixed:
            self.tracker.mark_initialised(Access(Memory.DRAM, False, start, ((words, 1),)))
        self.tables: set[Unit] = set()
        """Units that hold a table."""

    def fail(self, index: int, reason: str) -> ProgramError:
        return ProgramError(f"{describe(self.program, index)}: {reason}")

    def waits(self, index: int, instruction: Instruction) -> Counts:
        counts = waits_of(instruction)
        for unit, count in zip(QUEUED_UNITS, counts, strict=True):
            if count > self.order.count(unit):
                raise self.fail(
                    index,
                    f"waits for {count} {unit.name} instructions, but only {self.order.count(unit)} stand before it: "
                    "it may never start",
                )
        return counts

    def step(self, index: int, instruction: Instruction) -> None:
        waits = self.waits(index, instruction)
        if instruction.unit is Unit.CONTROL:
            return
        accesses = footprint(instruction, self.program.params)
        try:
            conflicts = self.tracker.conflicts(instruction.unit, accesses)
        except ProgramError as error:
            raise self.fail(index, str(error)) from None
        self.check_reads(index, accesses)
        self.check_stores(index, accesses)
        self.check_table(index, instruction)
        known = self.order.known(instruction.unit, waits)
        for unit in QUEUED_UNITS:
            if conflicts[unit] > known[unit]:
                raise self.fail(
                    index,
                    f"races with {unit.name} instruction {conflicts[unit]}: it touches the same words, but only "
                    f"{known[unit]} are certain to have finished",
                )
        self.order.append(instruction.unit, waits)
        self.tracker.record(instruction.unit, self.order.count(instruction.unit), accesses)

    def check_reads(self, index: int, accesses: Iterable[Access]) -> None:
        for access in accesses:
            if access.write or (access.memory is Memory.WEIGHT and access.base >= self.tracker.sizes[Memory.WEIGHT]):
                continue
            if (word := self.tracker.uninitialised(access)) is not None:
                raise self.fail(index, f"reads {access.memory.name.lower()} word {word}, which nobody has written")

    def check_table(self, index: int, instruction: Instruction) -> None:
        unit, use = instruction.unit, instruction.values.get("table", TableUse.NONE)
        if instruction.kind is Kind.VTABLE or (unit is Unit.MAC and use == TableUse.LOAD):
            self.tables.add(unit)
        elif use != TableUse.NONE and unit not in self.tables:
            raise self.fail(index, "uses a table, but none has been loaded before")

    def check_stores(self, index: int, accesses: Iterable[Access]) -> None:
        for access in accesses:
            if not access.write or access.memory is not Memory.DRAM:
                continue
            for start, words in self.fixed:
                if access.base < start + words and access.last >= start and _touches(access, start, start + words):
                    raise self.fail(index, f"stores over constants, inputs or instructions at words {start}..")


def _touches(access: Access, start: int, stop: int) -> bool:
    starts = [access.base]
    for count, step in access.dims[:-1]:
        starts = [s + k * step for s in starts for k in range(count)]
    run = (access.dims[-1][0] - 1) * access.dims[-1][1] + 1
    return any(s < stop and s + run > start for s in starts)


def _fixed_regions(program: Program) -> list[tuple[int, int]]:
    """Words that hold values when the program starts: instructions, constants, inputs."""
    word = program.params.word_bytes
    regions = [
        (program.instructions_at, instruction_words(len(program.instructions), program.params)),
        (program.image_at, -(-len(program.image) // word)),
    ]
    regions += [(p.address, p.words) for p in program.places if p.role is Role.INPUT]
    return [(start, words) for start, words in regions if words]


def _check_frame(program: Program) -> None:
    kinds = [i.kind for i in program.instructions]
    if not kinds or kinds[0] is not Kind.BEGIN or kinds[-1] is not Kind.END:
        raise ProgramError(f"program {program.name!r} must start with BEGIN and end with END")
    if kinds.count(Kind.END) > 1 or kinds.count(Kind.BEGIN) > 1:
        raise ProgramError(f"program {program.name!r} must have one BEGIN and one END")
    if waits_of(program.instructions[0]) != NOTHING:
        raise ProgramError(f"program {program.name!r} must not wait in BEGIN")


def check_program(program: Program) -> None:
    """Prove the program sound.

    Raises
    ------
    ProgramError
        A rule is broken; the message names the instruction, where it comes from, and the rule.
    """
    _check_frame(program)
    checker = _Checker(program)
    for index, instruction in enumerate(program.instructions):
        checker.step(index, instruction)
