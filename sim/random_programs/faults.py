"""Faults in random programs: a changed bit, or a bus error in a fetch, a load or a store; each ends in an error."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from intloom.common.errors import UsageError
from intloom.common.temporary_files import temporary_folder
from intloom.hw.spec.isa import INSTRUCTION_BYTES, Unit
from intloom.hw.spec.regs import Cause, unpack
from intloom.sim.random_programs.compare import Comparison, create_memory, first_byte, run_program
from intloom.sim.random_programs.program import RandomProgram
from intloom.sim.rtl.build import Build
from intloom.sim.rtl.job import Direction, InjectedError, MemorySettings, Response, RunFiles

_CHANGED = (Cause.PROGRAM_CHECK, Cause.WRONG_PROGRAM, Cause.BAD_OPCODE, Cause.BAD_FIELD)
"""Causes of a changed bit: the program check finds each, and other checks find some of them in the same cycle."""
_ERRORS = {
    Direction.READ: {Response.SLVERR: Cause.READ_SLVERR, Response.DECERR: Cause.READ_DECERR},
    Direction.WRITE: {Response.SLVERR: Cause.WRITE_SLVERR, Response.DECERR: Cause.WRITE_DECERR},
}


@dataclass(frozen=True)
class ProgramFault:
    """One fault, and the error that it must end in."""

    causes: tuple[Cause, ...]
    index: int
    """The instruction that the error names."""
    unit: Unit | None = None
    """The unit that the error names, if it is one of the units with a queue."""
    error: InjectedError | None = None
    bit: int | None = None
    """The changed bit of the program."""


def _changed_bit(program: RandomProgram, rng: random.Random) -> ProgramFault:
    bit = rng.randrange(8 * len(program.code()))
    return ProgramFault(_CHANGED, bit // (8 * INSTRUCTION_BYTES), bit=bit)


def _fetch_error(program: RandomProgram, rng: random.Random) -> ProgramFault:
    byte = rng.randrange(len(program.code()))
    word = program.program_word + byte // program.params.word_bytes
    error = InjectedError(word=word, response=rng.choice([*Response]), direction=Direction.READ)
    return ProgramFault((Cause.FETCH_ERROR,), byte // INSTRUCTION_BYTES, error=error)


def _read_error(program: RandomProgram, rng: random.Random) -> ProgramFault:
    """In one of the two loads that fill the memories."""
    p, response = program.params, rng.choice([*Response])
    at = rng.randrange(p.scratch_words + p.weight_words)
    error = InjectedError(word=program.image_word + at, response=response, direction=Direction.READ)
    return ProgramFault((_ERRORS[Direction.READ][response],), 1 + (at >= p.scratch_words), Unit.LOAD, error)


def _write_error(program: RandomProgram, rng: random.Random) -> ProgramFault:
    """In the last store, which writes the scratchpad to memory."""
    response = rng.choice([*Response])
    word = program.result_word + rng.randrange(program.params.scratch_words)
    error = InjectedError(word=word, response=response, direction=Direction.WRITE)
    return ProgramFault((_ERRORS[Direction.WRITE][response],), len(program.instructions()) - 2, Unit.STORE, error)


PROGRAM_FAULTS: Mapping[str, Callable[[RandomProgram, random.Random], ProgramFault]] = {
    "changed-bit": _changed_bit,
    "fetch-error": _fetch_error,
    "read-error": _read_error,
    "write-error": _write_error,
}
"""Makes a fault at a random position, by name."""


def program_fault(name: str, program: RandomProgram) -> ProgramFault:
    """The fault of a program; equal programs have equal faults."""
    if name not in PROGRAM_FAULTS:
        raise UsageError(f"fault of a random program must be one of {', '.join(PROGRAM_FAULTS)}, not {name!r}")
    return PROGRAM_FAULTS[name](program, random.Random(program.seed))


def run_with_fault(
    program: RandomProgram, simulator: Build, fault: ProgramFault, stall_permille: int = 0
) -> Comparison:
    """Run a program with a fault; a problem is any other end than the fault's error."""
    with temporary_folder("fault") as folder:
        files = RunFiles(folder)
        create_memory(program, files.memory)
        if fault.bit is not None:
            _change(program, files, fault.bit)
        memory = MemorySettings(stall_permille=stall_permille, seed=program.seed & 0xFFFF, error=fault.error)
        result = run_program(program, simulator, files, memory)
    if result.violation:
        return Comparison(f"AXI rule broken: {result.violation}", result.cycles)
    if not result.finished:
        return Comparison("no end after a fault", result.cycles)
    status, index, *_ = result.registers
    return Comparison(_difference(fault, status, index), result.cycles)


def _change(program: RandomProgram, files: RunFiles, bit: int) -> None:
    offset = program.base - first_byte(program) + program.program_word * program.params.word_bytes + bit // 8
    with files.memory.open("r+b") as file:
        file.seek(offset)
        (byte,) = file.read(1)
        file.seek(offset)
        file.write(bytes([byte ^ 1 << bit % 8]))


def _difference(fault: ProgramFault, status: int, index: int) -> str:
    fields = unpack("STATUS", status)
    cause, unit = Cause(fields["cause"]), Unit(fields["unit"])
    if fields["error"] and cause in fault.causes and index == fault.index and fault.unit in (None, unit):
        return ""
    wanted = f"{' or '.join(c.name for c in fault.causes)} of instruction {fault.index}"
    if fault.unit is not None:
        wanted += f", unit {fault.unit.name}"
    reported = f"{cause.name} of instruction {index}, unit {unit.name}" if fields["error"] else "no error"
    return f"the program must end with {wanted}, but ended with {reported}"
