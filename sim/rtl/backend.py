"""Runs programs on the RTL."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from compiler.program.memory import initial_memory, read_outputs
from compiler.program.program import Program
from hw.generate import generate_verilog
from sim.result import Arrays, Progress, ProgressCallback, RunResult

from .bench import Bench, RawResult, Watch
from .build import Build
from .fast import FastBench
from .job import Job, MemorySettings, RunFiles
from .judge import check_run
from .layers import Boundary, boundaries, layer_results
from .status import Status

_LIMIT_FACTOR = 8
_LIMIT_FLOOR = 2_000_000


def default_limit(program: Program) -> int:
    """Cycles that no sound run of this program takes, by the compiler's forecast."""
    return _LIMIT_FLOOR + _LIMIT_FACTOR * program.predicted_cycles


def make_job(program: Program, ends: list[Boundary], memory: MemorySettings, limit: int, watchdog: int) -> Job:
    """The bench's view of a program."""
    return Job(
        word_bytes=program.params.word_bytes,
        memory_words=program.memory_words,
        program_word=program.instructions_at,
        instructions=len(program.instructions),
        fingerprint=program.params.fingerprint(),
        limit=limit,
        watchdog=watchdog,
        memory=memory,
        boundaries=[(int(e.unit), e.count) for e in ends],
    )


class RtlBackend:
    """The accelerator's RTL behind a memory model.

    Parameters
    ----------
    bench
        How it is simulated; the fast bench when left out.
    memory
        How the memory behaves.
    limit
        Cycles after which a run is given up; by default far more than the compiler's forecast.
    watchdog
        Cycles without progress after which the accelerator itself gives up.
    verilog
        The accelerator's Verilog, when it is not what the program's parameters generate.
    folder
        Where the run's files (log, trace, waves) are kept; by default they are removed.
    """

    name = "rtl"

    def __init__(
        self,
        *,
        bench: Bench | None = None,
        memory: MemorySettings | None = None,
        limit: int | None = None,
        watchdog: int = 1 << 20,
        verilog: str | None = None,
        folder: Path | None = None,
    ) -> None:
        self._bench: Bench = bench if bench is not None else FastBench()
        self._memory = memory if memory is not None else MemorySettings()
        self._limit = limit
        self._watchdog = watchdog
        self._verilog = verilog
        self._folder = folder

    def run(self, program: Program, inputs: Arrays, *, progress: ProgressCallback | None = None) -> RunResult:
        """Run `program`; raises `SimulationError` with the state of every unit when it does not end well."""
        image = initial_memory(program, inputs)
        verilog = self._verilog if self._verilog is not None else generate_verilog(program.params)
        simulator = self._bench.build(verilog)
        with self._files() as files:
            return self._run(program, image, simulator, files, progress)

    @contextlib.contextmanager
    def _files(self) -> Iterator[RunFiles]:
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
            yield RunFiles(self._folder.resolve())
            return
        with tempfile.TemporaryDirectory(prefix="intloom-rtl-") as name:
            yield RunFiles(Path(name))

    def _run(
        self,
        program: Program,
        image: NDArray[np.uint8],
        simulator: Build,
        files: RunFiles,
        progress: ProgressCallback | None,
    ) -> RunResult:
        ends = boundaries(program)
        limit = self._limit if self._limit is not None else default_limit(program)
        job = make_job(program, ends, self._memory, limit, self._watchdog)
        image.tofile(files.memory)
        start = time.monotonic()
        watch = None if progress is None else _reporter(program, ends, progress)
        raw = self._bench.run(simulator, job, files, watch)
        check_run(program, raw, limit)
        memory = np.fromfile(files.memory, np.uint8)
        return _result(program, ends, raw, memory, time.monotonic() - start, simulator.seconds)


def _result(
    program: Program, ends: list[Boundary], raw: RawResult, memory: NDArray[np.uint8], wall_s: float, build_s: float
) -> RunResult:
    cycles = raw.counters["CYCLES"]
    macs = sum(layer.macs for layer in program.layers)
    return RunResult(
        backend="rtl",
        outputs=read_outputs(program, memory),
        wall_s=wall_s,
        build_s=build_s,
        cycles=cycles,
        macs=macs,
        mac_use=macs / (cycles * program.params.macs) if cycles else 0.0,
        sim_hz=cycles / raw.seconds if raw.seconds else 0.0,
        dram_bytes=(raw.counters["READ_BEATS"] + raw.counters["WRITE_BEATS"]) * program.params.word_bytes,
        counters=raw.counters,
        layers=layer_results(program, ends, raw.snapshots, raw.first_cycle, raw.counters),
        memory=memory,
        pulses=raw.pulses,
        origin=raw.first_cycle,
    )


_REPORT_SECONDS = 0.2


def _reporter(program: Program, ends: list[Boundary], progress: ProgressCallback) -> Watch:
    """Turns the simulator's status into progress, at most a few times a second."""
    started = time.monotonic()
    reported = started

    def watch(status: Status) -> None:
        nonlocal reported
        now = time.monotonic()
        if now - reported < _REPORT_SECONDS or status.cycle == 0:
            return
        reported = now
        hertz = status.cycle / (now - started)
        current = ends[min(status.layers, len(ends) - 1)].layer if ends else 0
        progress(
            Progress(
                cycle=status.cycle,
                layer=program.layers[current].name if program.layers else "",
                layers_done=status.layers,
                layers=len(ends),
                sim_hz=hertz,
                seconds_left=max(0.0, (program.predicted_cycles - status.cycle) / hertz),
            )
        )

    return watch
