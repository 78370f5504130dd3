"""Runs programs on the RTL."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from intloom.common.errors import SimulationError
from intloom.common.temporary_files import temporary_folder
from intloom.compiler.program.cost import instruction_cost
from intloom.compiler.program.memory import initial_memory, read_outputs
from intloom.compiler.program.program import Program, array_use
from intloom.hw.spec.isa import Instruction
from intloom.hw.spec.params import HardwareParams
from intloom.sim.result import Arrays, Progress, ProgressCallback, RunResult
from intloom.sim.rtl.bench import Bench, Watch, build_for
from intloom.sim.rtl.build import Build, BuildWatch
from intloom.sim.rtl.clock_edges import stopped_shares
from intloom.sim.rtl.completion import require_completed
from intloom.sim.rtl.fast import FastBench
from intloom.sim.rtl.job import Job, MemorySettings, RunFiles
from intloom.sim.rtl.layers import Boundary, boundaries, layer_results
from intloom.sim.rtl.own_sources import sources_hash
from intloom.sim.rtl.recording import Recording, StoppedSimulationError, record
from intloom.sim.rtl.status import Status
from intloom.sim.rtl.unit_state import describe_state
from intloom.sim.rtl.verilog import verilog_of
from intloom.sim.tensor_snapshots import tensor_snapshots

MemoryFault = Callable[[NDArray[np.uint8]], None]

_WATCHDOG_FLOOR = 4000
_WATCHDOG_PAUSES = 64
_LIMIT_FACTOR = 8
_LIMIT_FLOOR = 2_000_000


def default_limit(program: Program) -> int:
    """Cycles that no sound run of this program takes, by the compiler's forecast."""
    return _LIMIT_FLOOR + _LIMIT_FACTOR * program.predicted_cycles


def default_watchdog(program: Program, memory: MemorySettings) -> int:
    """Cycles without progress that no sound run of this program has: several times its longest instruction.

    Bank conflicts delay an instruction by less than a factor of 4. A slow memory has long pauses between beats.
    """
    longest = max(map(_longest, program.instructions, itertools.repeat(program.params)), default=0)
    pause = 1 / memory.bandwidth if memory.bandwidth else 1
    pause += 1000 / (1000 - memory.stall_permille)
    latency = memory.read_latency + memory.write_latency
    return _WATCHDOG_FLOOR + 4 * (longest + latency) + _WATCHDOG_PAUSES * math.ceil(pause)


def _longest(instruction: Instruction, params: HardwareParams) -> int:
    cost = instruction_cost(instruction, params)
    return cost.work + cost.tail


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
        The bench; default: the fast bench.
    memory
        Settings of the memory model.
    limit
        Cycles after which a run is stopped; default: 8 times the compiler's forecast plus 2 million.
    watchdog
        Cycles without progress after which the accelerator stops with cause WATCHDOG; default: from the forecast of the
        program's longest instruction and the memory's timing.
    verilog
        The accelerator's Verilog; default: generated for the program's parameters.
    folder
        Where the run's files (log, trace, waves) are kept; by default they are removed.
    keep_tensors
        Keep every tensor that passes through memory, not only the outputs.
    on_build
        Called with the progress of a simulator's build.
    inject
        Fault injection: changes the memory image before the run.
    """

    name = "rtl"

    def __init__(
        self,
        *,
        bench: Bench | None = None,
        memory: MemorySettings | None = None,
        limit: int | None = None,
        watchdog: int | None = None,
        verilog: str | None = None,
        folder: Path | None = None,
        keep_tensors: bool = False,
        on_build: BuildWatch | None = None,
        inject: MemoryFault | None = None,
    ) -> None:
        self._bench: Bench = bench if bench is not None else FastBench()
        self._memory = memory if memory is not None else MemorySettings()
        self._limit = limit
        self._watchdog = watchdog
        self._verilog = verilog
        self._folder = folder
        self._keep_tensors = keep_tensors
        self._on_build = on_build
        self._disturb = inject

    def run(self, program: Program, inputs: Arrays, *, progress: ProgressCallback | None = None) -> RunResult:
        """Run `program`; raises `SimulationError` with the state of every unit when it does not complete."""
        result = self.observe(program, inputs, progress=progress, log_writes=self._keep_tensors)
        return complete(program, result, self.limit(program), local=self.logs_results(program))

    def settings_text(self) -> str:
        """Everything about this backend that a run's result depends on, but for the Verilog."""
        return f"{self._bench.name} {self._memory!r} {self._watchdog} {sources_hash()}"

    def verilog(self, program: Program) -> str:
        """The Verilog that is simulated for `program`."""
        return self._verilog if self._verilog is not None else verilog_of(program.params)

    def build(self, program: Program) -> Build:
        """The simulator for `program`, from the cache or built now."""
        if self._verilog is not None:
            return self._bench.build(self._verilog, self._on_build)
        return build_for(self._bench, program.params, lambda: self.verilog(program), self._on_build)

    def logs_results(self, program: Program) -> bool:
        """Whether tensors that never leave the scratchpad are recorded."""
        return self._bench.logs_results(self.verilog(program))

    def limit(self, program: Program) -> int:
        """Cycles after which a run of `program` is given up."""
        return self._limit if self._limit is not None else default_limit(program)

    def watchdog(self, program: Program) -> int:
        """Cycles without progress after which the accelerator stops."""
        return self._watchdog if self._watchdog is not None else default_watchdog(program, self._memory)

    def observe(
        self,
        program: Program,
        inputs: Arrays,
        *,
        progress: ProgressCallback | None = None,
        log_writes: bool = False,
        waves: tuple[int, int] = (0, 0),
    ) -> RunResult:
        """Run `program` without checking that it completed; the result has no layers and tensors.

        With `log_writes` also every word that was stored and, on a bench with taps, written into local memories;
        `waves` are the first and last cycle to record on a bench that can.
        """
        image = initial_memory(program, inputs)
        if self._disturb is not None:
            self._disturb(image)
        simulator = self.build(program)
        ends = boundaries(program)
        job = make_job(program, ends, self._memory, self.limit(program), self.watchdog(program))
        job = dataclasses.replace(job, log_writes=log_writes, waves=waves)
        watch = None if progress is None else _reporter(program, ends, progress)
        with self._files() as files:
            recording = self._record(program, simulator, job, image, files, watch)
        return run_result(program, recording, self._memory.conditions(), simulator.seconds)

    def _record(
        self,
        program: Program,
        simulator: Build,
        job: Job,
        image: NDArray[np.uint8],
        files: RunFiles,
        watch: Watch | None,
    ) -> Recording:
        """One run; if the simulator crashes, the error contains the state of every unit."""
        try:
            return record(self._bench, simulator, job, image, files, watch)
        except StoppedSimulationError as error:
            state = describe_state(program, error.status.started, error.status.done)
            at = f"not before cycle {error.status.cycle}, with these units"
            raise SimulationError(f"{error}\n{at}:\n{state}") from None

    @contextlib.contextmanager
    def _files(self) -> Iterator[RunFiles]:
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
            yield RunFiles(self._folder.resolve())
            return
        with temporary_folder("intloom-rtl-") as folder:
            yield RunFiles(folder)


def run_result(
    program: Program, recording: Recording, conditions: Mapping[str, int | float], build_s: float
) -> RunResult:
    """The result of a simulation of the whole program; it has no layers and tensors yet."""
    report, counters = recording.report, recording.report.counters
    cycles = counters["CYCLES"]
    return RunResult(
        backend="rtl",
        outputs=read_outputs(program, recording.memory),
        wall_s=recording.wall_s,
        build_s=build_s,
        cycles=cycles,
        macs=program.macs,
        vector_macs=program.vector_macs,
        mac_use=array_use(program.macs, cycles, program.params),
        sim_hz=cycles / report.seconds if report.seconds else 0.0,
        clock_stopped=stopped_shares(recording.clocked, recording.status.cycle),
        dram_bytes=(counters["READ_BEATS"] + counters["WRITE_BEATS"]) * program.params.word_bytes,
        conditions=conditions,
        counters=counters,
        memory=recording.memory,
        pulses=recording.pulses,
        origin=report.first_cycle,
        report=report,
        status=recording.status,
        snapshots=recording.snapshots,
        writes=recording.writes,
    )


def complete(program: Program, result: RunResult, limit: int, *, local: bool) -> RunResult:
    """The result with layers, and with tensors if writes were logged; raises unless the program ran to its end.

    `local` says that the log contains the results in the scratchpad.
    """
    if result.report is not None and result.status is not None:
        require_completed(program, result.report, result.status, limit)
    tensors = {}
    if result.writes is not None:
        tensors = tensor_snapshots(program, result.writes, local=local)
    return dataclasses.replace(result, layers=layer_results(program, boundaries(program), result), tensors=tensors)


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
