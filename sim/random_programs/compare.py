"""Runs a random program on both simulators, and compares every instruction's writes, and all memories at the end.

Memories are sparse files over the whole address space.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from intloom.common.errors import IntloomError
from intloom.common.temporary_files import temporary_folder
from intloom.hw.spec import regs
from intloom.hw.spec.isa import Instruction, Unit, disassemble
from intloom.sim.isa_sim.machine import Machine, blank_machine
from intloom.sim.isa_sim.registry import SEMANTICS
from intloom.sim.random_programs.program import RandomProgram, loads_table
from intloom.sim.random_programs.writes import WriteComparison
from intloom.sim.rtl.bare import BareResult, build_bare, run_bare
from intloom.sim.rtl.build import Build
from intloom.sim.rtl.counter_checks import BenchCounts, contradictions
from intloom.sim.rtl.job import Job, MemorySettings, RunFiles
from intloom.sim.rtl.verilog import verilog_of
from intloom.sim.rtl.write_log import read_writes

_SPACE_BITS = 40
"""Address bits that the memory file covers; its first byte has the upper bits of the program's base."""
_LIMIT = 20_000_000
_QUICK = "-O1"
"""Compiler flags: simulators of random hardware run for seconds."""
_READ = ("STATUS", "ERROR_INDEX", *(register.name for register in regs.COUNTERS))


@dataclass(frozen=True)
class Comparison:
    """How a program ended."""

    problem: str
    """The first difference or error; empty if both simulators agree."""
    cycles: int = 0
    compared_bytes: int = 0
    counters: Mapping[str, int] = field(default_factory=dict)
    """The accelerator's."""


class IllegalProgramError(IntloomError):
    """The program has no defined result, for example after an instruction was removed."""


def simulator_of(program: RandomProgram) -> Build:
    """The RTL simulator for the program's hardware, built or from the cache."""
    return build_bare(verilog_of(program.params), optimize=_QUICK, taps=True)


def compare(
    program: RandomProgram, simulator: Build, stall_permille: int = 0, start_seed: int = 1, *, taps: bool = True
) -> Comparison:
    """Run `program` on both simulators; compare what each instruction writes, and all memories and tables at the end.

    `start_seed` gives the values before the reset, on a simulator with a random start. For a simulator without `taps`,
    only memory is compared, which at the end has the scratchpad's content.
    """
    with temporary_folder("random") as folder:
        expected, files = folder / "expected.bin", RunFiles(folder)
        for path in (expected, files.memory):
            create_memory(program, path)
        memory = MemorySettings(stall_permille=stall_permille, seed=program.seed & 0xFFFF)
        result = run_program(program, simulator, files, memory, start_seed, log_writes=taps)
        wrong = _interpret(program, expected, files.writes if taps else None)
        size = sum(stop - first for first, stop in _extents(expected))
        counters = dict(zip((register.name for register in regs.COUNTERS), result.registers[2:], strict=True))
        problem = _failure(program, result) or wrong or _wrong_counters(program, result, counters)
        return Comparison(problem or _difference(program, expected, files.memory), result.cycles, size, counters)


def _space(program: RandomProgram) -> int:
    return 1 << min(program.params.axi_addr_bits, _SPACE_BITS)


def first_byte(program: RandomProgram) -> int:
    """Address of the memory file's first byte."""
    return program.base >> _SPACE_BITS << _SPACE_BITS


def create_memory(program: RandomProgram, path: Path) -> None:
    """Write the memory before the start, a sparse file."""
    with path.open("wb") as file:
        file.truncate(_space(program))
        for word, data in program.contents().items():
            file.seek(program.base - first_byte(program) + word * program.params.word_bytes)
            file.write(data)


def _interpret(program: RandomProgram, path: Path, log: Path | None) -> str:
    """Execute the instructions in order on the file; the first difference from the log of an RTL run, if there is one.

    Without a log, nothing is compared.
    """
    params = program.params
    memory = np.memmap(path, np.int8, "r+")
    machine: Machine = blank_machine(params, np.zeros(params.word_bytes, np.uint8))
    first_word = (program.base - first_byte(program)) // params.word_bytes
    machine.dram = memory.reshape(-1, params.word_bytes)[first_word:]
    comparison = WriteComparison(machine, read_writes(log, params.word_bytes), first_word) if log else None
    execute = comparison.execute if comparison else partial(_execute, machine)
    wrong, loaded = "", set[Unit]()
    for number, instruction in enumerate(program.instructions()):
        if loads_table(instruction):
            loaded.add(instruction.unit)
        elif instruction.values.get("table") and instruction.unit not in loaded:
            raise IllegalProgramError("a table must be loaded before it is used")
        difference = execute(instruction)
        if difference and not wrong:
            wrong = f"instruction {number}, {disassemble(instruction)}: {difference}"
    memory.flush()
    return wrong or (comparison.finish() if comparison else "")


def _execute(machine: Machine, instruction: Instruction) -> str:
    SEMANTICS[instruction.kind](machine, instruction)
    return ""


def run_program(
    program: RandomProgram,
    simulator: Build,
    files: RunFiles,
    memory: MemorySettings,
    start_seed: int = 1,
    *,
    log_writes: bool = False,
) -> BareResult:
    """Run a program on the RTL; `registers` of the result are STATUS, ERROR_INDEX and all counters."""
    space = _space(program)
    job = Job(
        word_bytes=program.params.word_bytes,
        port_bytes=program.params.port_bytes,
        memory_words=space // program.params.word_bytes,
        program_word=program.program_word,
        instructions=len(program.code()) // 64,
        limit=_LIMIT,
        memory=memory,
        memory_base=program.base,
        first_byte=first_byte(program),
        registers=_READ,
        log_writes=log_writes,
    )
    return run_bare(simulator, job, files, start_seed)


def _failure(program: RandomProgram, result: BareResult) -> str:
    if result.violation:
        return f"AXI rule broken: {result.violation}"
    if not result.finished:
        return f"no end within {_LIMIT} cycles"
    status, index, *_ = result.registers
    fields = regs.unpack("STATUS", status)
    if fields["error"]:
        return f"error {regs.Cause(fields['cause']).name} at instruction {index}: {_text(program, index)}"
    return ""


def _wrong_counters(program: RandomProgram, result: BareResult, counters: Mapping[str, int]) -> str:
    counted = BenchCounts(cycles=result.cycles, read_beats=result.read_beats, write_beats=result.write_beats)
    return next(contradictions(counters, program.instructions(), counted), "")


def _text(program: RandomProgram, index: int) -> str:
    instructions = program.instructions()
    return disassemble(instructions[index]) if index < len(instructions) else "behind the program"


def _extents(path: Path) -> Iterator[tuple[int, int]]:
    """The ranges of a sparse file that hold data."""
    with path.open("rb") as file:
        at, size = 0, path.stat().st_size
        while True:
            try:
                first = os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError:
                return
            at = os.lseek(file.fileno(), first, os.SEEK_HOLE)
            yield first, min(at, size)


def _difference(program: RandomProgram, expected: Path, found: Path) -> str:
    wanted, got = np.memmap(expected, np.uint8, "r"), np.memmap(found, np.uint8, "r")
    for first, stop in sorted({*_extents(expected), *_extents(found)}):
        differs = np.flatnonzero(wanted[first:stop] != got[first:stop])
        if differs.size:
            at = first + int(differs[0])
            return f"{_location(program, at)}: {int(got[at])} instead of {int(wanted[at])}"
    return ""


def _location(program: RandomProgram, at: int) -> str:
    word, byte = divmod(at + first_byte(program) - program.base, program.params.word_bytes)
    if 0 <= word - program.result_word < program.params.scratch_words:
        return f"scratchpad word {word - program.result_word}, byte {byte}"
    return f"memory word {word:#x}, byte {byte}"
