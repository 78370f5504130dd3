"""Faults that a run must end with, each with its own error cause, none in a hang."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from intloom.common.errors import UsageError
from intloom.compiler.program.constant_check import run_offsets
from intloom.compiler.program.program import Program
from intloom.hw.spec.formats import memory_run
from intloom.hw.spec.isa import BY_KIND, CHECK_LSB, INSTRUCTION_BYTES, Instruction, Kind
from intloom.hw.spec.program_check import add_check
from intloom.hw.spec.regs import Cause
from intloom.sim.rtl.job import Direction, InjectedError, MemorySettings, Response

_QUICK_WATCHDOG = 5000
_HIGH_BYTE = INSTRUCTION_BYTES - 2
"""A byte above the last field of all instructions but CONV."""


@dataclass(frozen=True)
class Fault:
    """A changed program or memory, and the cause that the error must name."""

    mutate: Callable[[Program], Program]
    memory: Callable[[Program], InjectedError | None]
    cause: Cause
    watchdog: int = _QUICK_WATCHDOG
    inject: Callable[[Program, NDArray[np.uint8]], None] | None = None
    """Changes bytes of the memory that holds the program."""

    def settings(self, program: Program) -> MemorySettings:
        """The memory with the fault."""
        return MemorySettings(error=self.memory(program))


def _no_error(_program: Program) -> InjectedError | None:
    return None


def _as_is(program: Program) -> Program:
    return program


def _first(program: Program, kind: Kind) -> tuple[int, Instruction]:
    return next((n, i) for n, i in enumerate(program.instructions) if i.kind is kind)


def _with(program: Program, index: int, instruction: Instruction) -> Program:
    instructions = (*program.instructions[:index], instruction, *program.instructions[index + 1 :])
    return replace(program, instructions=instructions)


def _on_first(kind: Kind, response: Response, direction: Direction) -> Callable[[Program], InjectedError | None]:
    def inject(program: Program) -> InjectedError | None:
        _, instruction = _first(program, kind)
        return InjectedError(word=instruction["dram"], response=response, direction=direction)

    return inject


def _other_fingerprint(program: Program) -> Program:
    index, begin = _first(program, Kind.BEGIN)
    # One changed bit is the smallest difference that the hardware must find.
    return _with(program, index, begin.with_fields(fingerprint=begin["fingerprint"] ^ 1))


def _store_outside(program: Program) -> Program:
    index, store = _first(program, Kind.STORE)
    return _with(program, index, store.with_fields(dram=program.memory_words + 4096))


def _convolve_outside(program: Program) -> Program:
    index, conv = _first(program, Kind.CONV)
    return _with(program, index, conv.with_fields(out_base=program.params.scratch_words))


def _deadlock(program: Program) -> Program:
    """The first load waits for a store that can only come later."""
    index, load = _first(program, Kind.LOAD)
    return _with(program, index, load.with_fields(wait_store=1))


def _no_end(program: Program) -> Program:
    return replace(program, instructions=program.instructions[:-1], provenance=program.provenance[:-1])


def _code(program: Program, memory: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The encoded instructions in memory, one a row."""
    first = program.instructions_at * program.params.word_bytes
    size = len(program.instructions) * INSTRUCTION_BYTES
    return memory[first : first + size].reshape(-1, INSTRUCTION_BYTES)


def _alter_first(kind: Kind, byte: int, value: int) -> Callable[[Program, NDArray[np.uint8]], None]:
    """One byte of the first instruction of a kind, with a matching program check, as faulty software writes it."""

    def alter(program: Program, memory: NDArray[np.uint8]) -> None:
        index, _ = _first(program, kind)
        code = _code(program, memory)
        code[index, byte] = value
        code[:] = np.frombuffer(add_check(map(bytes, code)), np.uint8).reshape(code.shape)

    return alter


def _flip_first(kind: Kind, bit: int) -> Callable[[Program, NDArray[np.uint8]], None]:
    """One bit of the first instruction of a kind, as a memory error leaves it."""

    def flip(program: Program, memory: NDArray[np.uint8]) -> None:
        index, _ = _first(program, kind)
        _code(program, memory)[index, bit // 8] ^= 1 << bit % 8

    return flip


def _flip_constant(program: Program, memory: NDArray[np.uint8]) -> None:
    """One bit of the last word that the first load with a CRC reads."""
    load = next(i for i in program.instructions if i.kind is Kind.LOAD and i["crc"])
    last = run_offsets(load, program.params)[-1] + memory_run(load) - 1
    memory[last * program.params.word_bytes] ^= 0x10


def _on_program(program: Program) -> InjectedError:
    return InjectedError(word=program.instructions_at, response=Response.SLVERR, direction=Direction.READ)


FAULTS: dict[str, Fault] = {
    "read-slverr": Fault(_as_is, _on_first(Kind.LOAD, Response.SLVERR, Direction.READ), Cause.READ_SLVERR),
    "read-decerr": Fault(_as_is, _on_first(Kind.LOAD, Response.DECERR, Direction.READ), Cause.READ_DECERR),
    "write-slverr": Fault(_as_is, _on_first(Kind.STORE, Response.SLVERR, Direction.WRITE), Cause.WRITE_SLVERR),
    "write-outside": Fault(_store_outside, _no_error, Cause.OUTSIDE_WINDOW),
    "other-hardware": Fault(_other_fingerprint, _no_error, Cause.WRONG_PROGRAM),
    "scratch-range": Fault(_convolve_outside, _no_error, Cause.SCRATCH_RANGE),
    "deadlock": Fault(_deadlock, _no_error, Cause.WATCHDOG),
    "no-end": Fault(_no_end, _no_error, Cause.NO_END),
    "fetch-slverr": Fault(_as_is, _on_program, Cause.FETCH_ERROR),
    "bad-opcode": Fault(_as_is, _no_error, Cause.BAD_OPCODE, inject=_alter_first(Kind.CONV, 0, 0xEE)),
    "bad-field": Fault(_as_is, _no_error, Cause.BAD_FIELD, inject=_alter_first(Kind.STORE, _HIGH_BYTE, 0x80)),
    "bad-program": Fault(_as_is, _no_error, Cause.WRONG_PROGRAM, inject=_alter_first(Kind.BEGIN, 0, 0x00)),
    "changed-bit": Fault(
        _as_is, _no_error, Cause.PROGRAM_CHECK, inject=_flip_first(Kind.CONV, BY_KIND[Kind.CONV].offsets["in_base"])
    ),
    "changed-constant": Fault(_as_is, _no_error, Cause.CONSTANT_CHECK, inject=_flip_constant),
    "changed-end": Fault(_as_is, _no_error, Cause.PROGRAM_CHECK, inject=_flip_first(Kind.END, CHECK_LSB)),
}


def fault(name: str) -> Fault:
    """The fault called `name`."""
    if name not in FAULTS:
        raise UsageError(f"fault must be one of {', '.join(FAULTS)}, not {name!r}")
    return FAULTS[name]
