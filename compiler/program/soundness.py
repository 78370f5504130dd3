"""Soundness of a program: whatever the timing, it ends and computes one result. Proved from the instructions alone.

Rules, each checked for every instruction:

1. Waits name only earlier instructions. The oldest unfinished instruction can then always run: no deadlock.
2. Every word read was written by an earlier instruction, or holds an input or a constant.
3. Every hazard (RAW, WAR, WAW) is ordered by waits or by the in-order issue of a unit. That a word still holds what
   its reader wants is not among the rules: instructions do not tell which tensor they mean.
4. Addresses are inside their memories. Stores touch neither constants, inputs nor instructions, which are disjoint.
5. A table is used only after one has been loaded, exponentials only after all of their bytes have been, and sums are
   continued only after a CONV of as many pixels in one strip.
6. The program starts with `BEGIN` and ends with `END`; neither occurs elsewhere.

`check_program` proves a whole program; the instruction simulator checks each instruction before it executes it.
"""

from collections.abc import Iterable

from intloom.common.errors import ProgramError
from intloom.compiler.program.footprint import Access, Memory, footprint
from intloom.compiler.program.hazards import NOTHING, AccessTracker, Counts, Order, waits_of
from intloom.compiler.program.memory import instruction_words
from intloom.compiler.program.program import Program, Role
from intloom.hw.spec.conv_stream import continuable_pixels
from intloom.hw.spec.isa import QUEUED_UNITS, Instruction, Kind, TableUse, Unit, disassemble
from intloom.hw.spec.softmax import EXPONENTIAL_BYTES


def describe(program: Program, index: int) -> str:
    """An instruction with its number and provenance, for messages."""
    origin = program.provenance[index] if index < len(program.provenance) else None
    where = ""
    if origin is not None and 0 <= origin.layer < len(program.layers):
        note = f", {origin.note}" if origin.note else ""
        where = f" (layer {program.layers[origin.layer].name!r}, tile {origin.tile}{note})"
    return f"instruction {index}{where}: {disassemble(program.instructions[index])}"


class SoundnessChecker:
    """Checks rules 1 to 5 instruction by instruction, in program order."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._order = Order()
        self._tracker = AccessTracker(program.params, program.memory_words)
        self._fixed = _fixed_regions(program)
        _check_disjoint(program, self._fixed)
        for start, words in self._fixed:
            self._tracker.mark_initialized(Access(Memory.DRAM, False, start, ((words, 1),)))
        self._tables: set[Unit] = set()
        self._exponentials: set[int] = set()
        """Units that hold a table."""
        self._pixels = 0
        """Pixels of the last CONV whose sums the next one may continue."""

    def step(self, index: int) -> None:
        """Check the instruction `index`, which must follow the one checked before.

        Raises
        ------
        ProgramError
            A rule is broken; the message names the instruction, its layer, and the rule.
        """
        instruction = self._program.instructions[index]
        waits = self._waits(index, instruction)
        if instruction.unit is Unit.CONTROL:
            return
        accesses = footprint(instruction, self._program.params)
        try:
            conflicts = self._tracker.conflicts(instruction.unit, accesses)
        except ProgramError as error:
            raise self._error(index, str(error)) from None
        # Reads are checked before this instruction is recorded, so it cannot initialize its own operands.
        self._check_reads(index, accesses)
        self._check_stores(index, accesses)
        self._check_state(index, instruction)
        self._check_hazards(index, conflicts, self._order.known(instruction.unit, waits))
        self._order.append(instruction.unit, waits)
        self._tracker.record(instruction.unit, self._order.count(instruction.unit), accesses)

    def _error(self, index: int, reason: str) -> ProgramError:
        return ProgramError(f"{describe(self._program, index)}: {reason}")

    def _waits(self, index: int, instruction: Instruction) -> Counts:
        counts = waits_of(instruction)
        for unit, count in zip(QUEUED_UNITS, counts, strict=True):
            if count > self._order.count(unit):
                raise self._error(
                    index,
                    f"waits for {count} {unit.name} instructions, but only {self._order.count(unit)} precede it: it "
                    "may never start",
                )
        return counts

    def _check_hazards(self, index: int, conflicts: Counts, known: Counts) -> None:
        for unit in QUEUED_UNITS:
            if conflicts[unit] > known[unit]:
                raise self._error(
                    index,
                    f"races with {unit.name} instruction {conflicts[unit]}: both access the same words, but its waits "
                    f"guarantee only that {known[unit]} have finished",
                )

    def _check_reads(self, index: int, accesses: Iterable[Access]) -> None:
        for access in accesses:
            word = None if access.write else self._tracker.uninitialized(access)
            if word is not None:
                raise self._error(index, f"reads uninitialized {access.memory.name.lower()} word {word}")

    def _check_state(self, index: int, instruction: Instruction) -> None:
        unit, use = instruction.unit, instruction.values.get("table", TableUse.NONE)
        # The checker follows program order, which is the execution order inside each unit.
        if instruction.kind is Kind.VTABLE or (unit is Unit.MAC and use == TableUse.LOAD):
            self._tables.add(unit)
        elif use != TableUse.NONE and unit not in self._tables:
            raise self._error(index, "uses a table, but none has been loaded before")
        if instruction.kind is Kind.VEXP:
            self._exponentials.add(instruction["part"])
        if instruction.kind is Kind.VSOFTMAX and len(self._exponentials) < EXPONENTIAL_BYTES:
            raise self._error(index, "uses exponentials, but not all of their bytes have been loaded before")
        if instruction.kind is Kind.CONV:
            pixels = continuable_pixels(instruction, self._program.params)
            if instruction["continue_sums"] and not 0 < pixels == self._pixels:
                raise self._error(index, f"continues sums of {pixels} pixels, but the CONV before has {self._pixels}")
            self._pixels = pixels

    def _check_stores(self, index: int, accesses: Iterable[Access]) -> None:
        for access in accesses:
            if not access.write or access.memory is not Memory.DRAM:
                continue
            for start, words in self._fixed:
                if access.base < start + words and access.last >= start and _touches(access, start, start + words):
                    raise self._error(index, f"overwrites constants, inputs or instructions from word {start} on")


def _touches(access: Access, start: int, stop: int) -> bool:
    starts = [access.base]
    for count, step in access.dims[:-1]:
        starts = [s + k * step for s in starts for k in range(count)]
    # The innermost dimension is a run, so its range is compared as a whole.
    run = (access.dims[-1][0] - 1) * access.dims[-1][1] + 1
    return any(s < stop and s + run > start for s in starts)


def _fixed_regions(program: Program) -> list[tuple[int, int]]:
    """Regions (start, words) initialized before the program starts: instructions, constants, inputs."""
    word = program.params.word_bytes
    regions = [
        (program.instructions_at, instruction_words(len(program.instructions), program.params)),
        (program.image_at, -(-len(program.image) // word)),
    ]
    regions += [(p.address, p.words) for p in program.tensors if p.role is Role.INPUT]
    return [(start, words) for start, words in regions if words]


def _check_disjoint(program: Program, regions: Iterable[tuple[int, int]]) -> None:
    """Of overlapping regions, one would replace the other after the check."""
    end = 0
    for start, words in sorted(regions):
        if start < end:
            raise ProgramError(
                f"program {program.name!r} must have instructions, constants and inputs in different words of memory, "
                f"but word {start} belongs to two of them"
            )
        end = start + words


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
        A rule is broken; the message names the instruction, its layer, and the rule.
    """
    _check_frame(program)
    checker = SoundnessChecker(program)
    for index in range(len(program.instructions)):
        checker.step(index)
