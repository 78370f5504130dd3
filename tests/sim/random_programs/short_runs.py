"""Programs of a few instructions whose ending is of interest, not their results."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from intloom.common.temporary_files import temporary_folder
from intloom.hw.spec import regs
from intloom.hw.spec.identity import begin
from intloom.hw.spec.isa import INSTRUCTION_BYTES, QUEUED_UNITS, Instruction, Kind, Unit, encode, make
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.program_check import add_check
from intloom.hw.spec.regs import Cause
from intloom.sim.rtl.bare import run_bare
from intloom.sim.rtl.build import Build
from intloom.sim.rtl.job import MEMORY_BASE, Job, RunFiles

_MEMORY_BYTES = 1 << 16
PROGRAM_BYTE = 1 << 12
"""Offset of the program in the memory."""
_LIMIT = 20_000
_WATCHDOG = 300


@dataclass(frozen=True)
class Ending:
    """How a program ended."""

    cause: Cause
    unit: Unit = Unit.LOAD
    index: int = 0


DONE = Ending(Cause.NONE)


def altered(i: Instruction, name: str, bit: int) -> bytes:
    """An encoded instruction with one bit of a field inverted, legal or not."""
    return (int.from_bytes(encode(i), "little") ^ 1 << i.spec.offsets[name] + bit).to_bytes(INSTRUCTION_BYTES, "little")


def checked(params: HardwareParams, *codes: bytes) -> bytes:
    """BEGIN, these instructions, and END, with check bits."""
    return add_check([encode(begin(params)), *codes, encode(make(Kind.END))])


def ending(
    simulator: Build, params: HardwareParams, program: bytes, also: Sequence[str] = (), **settings: Any
) -> Ending | None:
    """Run a program on zero memories; `also` are registers that are read at the end, `settings` replace those of `Job`.

    None if the program does not end within 20,000 cycles.
    """
    with temporary_folder("short") as folder:
        files = RunFiles(folder)
        memory = bytearray(_MEMORY_BYTES + len(program))
        memory[PROGRAM_BYTE : PROGRAM_BYTE + len(program)] = program
        files.memory.write_bytes(memory)
        job = Job(
            word_bytes=params.word_bytes,
            port_bytes=params.port_bytes,
            memory_words=len(memory) // params.word_bytes,
            program_word=PROGRAM_BYTE // params.word_bytes,
            instructions=len(program) // INSTRUCTION_BYTES,
            limit=_LIMIT + len(program),
            watchdog=_WATCHDOG,
            memory_base=MEMORY_BASE,
            registers=("STATUS", "ERROR_INDEX", *also),
        )
        result = run_bare(simulator, replace(job, **settings), files)
    assert not result.violation, result
    if not result.finished:
        return None
    status, index, *_ = result.registers
    fields = regs.unpack("STATUS", status)
    assert fields["done"] != fields["error"]
    return Ending(Cause(fields["cause"]), Unit(fields["unit"]), index)


def waits() -> Sequence[tuple[str, Instruction]]:
    """For every unit with instructions, one that can wait, and the name of each of its wait fields."""
    kinds = (Kind.LOAD, Kind.STORE, Kind.CONV, Kind.VTABLE)
    return [(f"wait_{unit.name.lower()}", make(kind)) for kind in kinds for unit in QUEUED_UNITS]
