"""One RTL run as a value: memory model, register writes, limits; and its files."""

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from enum import IntFlag
from pathlib import Path
from typing import ClassVar

from intloom.common.errors import UsageError
from intloom.compiler.program.program import MemoryTiming
from intloom.hw.spec import regs
from intloom.sim.host.run_program import RunSetup

JOB_VARIABLE = "INTLOOM_BENCH_JOB"
"""Environment variable with the path of the job for Python, for the cocotb test."""
MEMORY_BASE = 0x4000_0000
"""Byte address at which benches put the memory: not 0, so that an error in the base register is found."""


class Direction(IntFlag):
    """Which accesses an injected bus error meets."""

    READ = 1
    WRITE = 2


class Response(IntFlag):
    """AXI error responses."""

    SLVERR = 2
    DECERR = 3


@dataclass(frozen=True, kw_only=True)
class InjectedError:
    """A word of memory that answers with a bus error."""

    word: int
    response: Response = Response.SLVERR
    direction: Direction = Direction.READ


@dataclass(frozen=True, kw_only=True)
class MemorySettings(MemoryTiming):
    """How the memory behind the AXI port behaves; the default timing is the one that the compiler predicts for."""

    stall_permille: int = 0
    """Chance, in thousandths, that a channel pauses for a cycle."""
    seed: int = 1
    outstanding: int = 16
    """Bursts that the memory holds in each direction before it stops taking addresses."""
    error: InjectedError | None = None
    _MIN_BANDWIDTH: ClassVar[float] = 0.001
    """The benches count in thousandths."""

    @property
    def timing(self) -> MemoryTiming:
        """What the compiler knows of the memory."""
        return MemoryTiming(**{f.name: getattr(self, f.name) for f in fields(MemoryTiming)})

    def conditions(self) -> dict[str, int | float]:
        """What the cycles of a run depend on, by name."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "error"}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.seed < 0:
            raise UsageError(f"memory seed must not be negative, not {self.seed}")
        if not 0 <= self.stall_permille < 1000:
            raise UsageError(f"memory stall_permille must be from 0 to 999, not {self.stall_permille}")
        if self.outstanding < 1:
            raise UsageError(f"memory outstanding must be at least 1, not {self.outstanding}")


@dataclass(frozen=True, kw_only=True)
class Job:
    """One run of the accelerator."""

    word_bytes: int
    port_bytes: int = 0
    """Width of the memory port; 0 means a word."""
    memory_words: int
    program_word: int
    instructions: int
    limit: int
    """Cycles after which the bench gives up."""
    watchdog: int = 1 << 20
    memory: MemorySettings = field(default_factory=MemorySettings)
    log_writes: bool = False
    """Record every word that a unit writes; local memories only with a bench that taps them."""
    log_bus: bool = False
    """Record every burst on the bus, in benches in C++."""
    waves: tuple[int, int] = (0, 0)
    """First and last cycle, from the simulation's start, of the waves that a bench built for them records."""
    memory_base: int = MEMORY_BASE
    """Byte address in the base register."""
    first_byte: int = MEMORY_BASE
    """Byte address of the first byte of the memory file."""
    window_words: int | None = None
    """Words that the program may address; None: up to the end of the memory file."""
    registers: Sequence[str] = ()
    """Registers that the bare loop reads at the end."""
    closing: Sequence[tuple[str, int]] = ()
    """Registers that the bare loop writes after that, with their values."""
    boundaries: Sequence[tuple[int, int]] = ()
    """For every layer in order, the unit and its count of finished instructions at which the layer is done."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "port_bytes", self.port_bytes or self.word_bytes)

    @property
    def beat_bytes(self) -> int:
        """Bytes that a beat on the memory port carries."""
        return min(self.word_bytes, self.port_bytes)

    @property
    def memory_bytes(self) -> int:
        """Size of the memory file."""
        return self.memory_words * self.word_bytes

    def setup(self) -> RunSetup:
        """The run as the host driver takes it; the memory file already holds the image."""
        up_to_end = self.memory_words - (self.memory_base - self.first_byte) // self.word_bytes
        return RunSetup(
            memory_base=self.memory_base,
            memory_words=up_to_end if self.window_words is None else self.window_words,
            program_word=self.program_word,
            instructions=self.instructions,
            watchdog=self.watchdog,
        )


class RunFiles:
    """The files of one run, all in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.job = folder / "job.txt"
        """The job for C++."""
        self.python_job = folder / "job.pickle"
        """The job for the Python side of the bench."""
        self.memory = folder / "memory.bin"
        """The memory itself."""
        self.status = folder / "status.bin"
        """The status block, fresh while the simulator runs."""
        self.trace = folder / "trace.bin"
        """Starts and ends of instructions."""
        self.snapshots = folder / "snapshots.bin"
        """Counters at the end of every layer."""
        self.waves = folder / "dump.fst"
        """Waves, when the bench is built for them."""
        self.writes = folder / "writes.bin"
        """Every word written by a unit, when the job asks for it."""
        self.bursts = folder / "bursts.bin"
        """Every burst on the bus, when the job asks for it."""
        self.result = folder / "result.json"
        """What the Python side of the bench found."""
        self.log = folder / "simulator.log"
        """What the simulator printed."""


def write_job(job: Job, files: RunFiles) -> None:
    """Write the job for both sides of a bench: as lines for C++, as the object itself for Python."""
    files.job.write_text(_lines(job, files), encoding="utf-8")
    files.python_job.write_bytes(pickle.dumps((job, files)))


def read_job(path: Path) -> tuple[Job, RunFiles]:
    """The job for Python and its files."""
    content: tuple[Job, RunFiles] = pickle.loads(path.read_bytes())
    return content


def _lines(job: Job, files: RunFiles) -> str:
    """For C++: lines of a key and its values."""
    injected = job.memory.error
    writes = [*job.setup().register_writes(), ("CONTROL", regs.pack("CONTROL", start=1))]
    lines = {
        "word_bytes": job.word_bytes,
        "port_bytes": job.port_bytes,
        "base": job.first_byte,
        "memory_bytes": job.memory_bytes,
        "memory_file": files.memory,
        "status_file": files.status,
        "trace_file": files.trace,
        "snapshot_file": files.snapshots,
        "write_log": files.writes if job.log_writes else "",
        "bus_log": files.bursts if job.log_bus else "",
        **job.memory.conditions(),
        # Thousandths: csrc/job.h reads every number as an integer.
        "bandwidth_milli": round(job.memory.bandwidth * 1000),
        "error_address": job.memory_base + injected.word * job.word_bytes if injected else 0,
        "error_response": int(injected.response) if injected else 0,
        "error_directions": int(injected.direction) if injected else 0,
        "limit": job.limit,
        "wave_first": job.waves[0],
        "wave_last": job.waves[1],
        "wave_file": files.waves,
    }
    text = [f"{key} {value}" for key, value in lines.items()]
    text += [f"boundary {unit} {count}" for unit, count in job.boundaries]
    text += [f"counter {r.offset}" for r in regs.COUNTERS]
    text += [f"read {regs.register(name).offset} 0" for name in job.registers]
    text += [f"closing {regs.register(name).offset} {value}" for name, value in job.closing]
    text += [f"write {regs.register(name).offset} {value}" for name, value in writes]
    return "\n".join(text) + "\n"
