"""Faults that a run must end with, each in a clear error and never in a hang."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from compiler.program.program import Program
from hw.spec.errors import UsageError
from hw.spec.isa import Instruction, Kind
from hw.spec.regs import Cause
from sim.rtl.job import Direction, MemorySettings, PlantedError, Response

_QUICK_WATCHDOG = 5000


@dataclass(frozen=True)
class Fault:
    """A spoiled program or memory, and what the error must name."""

    spoil: Callable[[Program], Program]
    memory: Callable[[Program], PlantedError | None]
    cause: Cause
    watchdog: int = _QUICK_WATCHDOG

    def settings(self, program: Program) -> MemorySettings:
        """The memory with the fault."""
        return MemorySettings(error=self.memory(program))


def _no_error(_program: Program) -> PlantedError | None:
    return None


def _as_is(program: Program) -> Program:
    return program


def _first(program: Program, kind: Kind) -> tuple[int, Instruction]:
    return next((n, i) for n, i in enumerate(program.instructions) if i.kind is kind)


def _with(program: Program, index: int, instruction: Instruction) -> Program:
    instructions = (*program.instructions[:index], instruction, *program.instructions[index + 1 :])
    return replace(program, instructions=instructions)


def _on_first(kind: Kind, response: Response, direction: Direction) -> Callable[[Program], PlantedError | None]:
    def plant(program: Program) -> PlantedError | None:
        _, instruction = _first(program, kind)
        return PlantedError(word=instruction["dram"], response=response, direction=direction)

    return plant


def _other_fingerprint(program: Program) -> Program:
    index, begin = _first(program, Kind.BEGIN)
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


FAULTS: dict[str, Fault] = {
    "read-slverr": Fault(_as_is, _on_first(Kind.LOAD, Response.SLVERR, Direction.READ), Cause.READ_SLVERR),
    "read-decerr": Fault(_as_is, _on_first(Kind.LOAD, Response.DECERR, Direction.READ), Cause.READ_DECERR),
    "write-slverr": Fault(_as_is, _on_first(Kind.STORE, Response.SLVERR, Direction.WRITE), Cause.WRITE_SLVERR),
    "write-outside": Fault(_store_outside, _no_error, Cause.WRITE_DECERR),
    "other-hardware": Fault(_other_fingerprint, _no_error, Cause.WRONG_PROGRAM),
    "scratch-range": Fault(_convolve_outside, _no_error, Cause.SCRATCH_RANGE),
    "deadlock": Fault(_deadlock, _no_error, Cause.WATCHDOG),
    "no-end": Fault(_no_end, _no_error, Cause.NO_END),
}


def fault(name: str) -> Fault:
    """The fault called `name`."""
    if name not in FAULTS:
        raise UsageError(f"fault must be one of {', '.join(FAULTS)}, not {name!r}")
    return FAULTS[name]
