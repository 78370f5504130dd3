"""Runs programs on the RTL."""

import contextlib
import dataclasses
import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence

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
from intloom.sim.rtl.bench import Watch
from intloom.sim.rtl.build import Build
from intloom.sim.rtl.clock_edges import stopped_shares
from intloom.sim.rtl.completion import require_completed
from intloom.sim.rtl.fast import build_for
from intloom.sim.rtl.job import Job, MemorySettings, RunFiles
from intloom.sim.rtl.layers import Boundary, boundaries, layer_results
from intloom.sim.rtl.options import RtlOptions
from intloom.sim.rtl.own_sources import sources_hash
from intloom.sim.rtl.recording import LoadedJob, Recording, StoppedSimulationError, record
from intloom.sim.rtl.status import Status
from intloom.sim.rtl.unit_state import describe_state
from intloom.sim.rtl.verilog import verilog_of
from intloom.sim.tensor_snapshots import tensor_snapshots

MemoryFault = Callable[[NDArray[np.uint8]], None]

_WATCHDOG_FLOOR = 4000
_WATCHDOG_PAUSES = 64
_LIMIT_FACTOR = 8
_LIMIT_FLOOR = 2_000_000


def limit_of(program: Program, options: RtlOptions) -> int:
    """Cycles after which a run is given up; by default, no sound run of this program takes as many."""
    return _LIMIT_FLOOR + _LIMIT_FACTOR * program.predicted_cycles if options.limit is None else options.limit


def watchdog_of(program: Program, options: RtlOptions) -> int:
    """Cycles without progress after which the accelerator stops; by default several times the longest instruction.

    Bank conflicts delay an instruction by less than a factor of 4. A slow memory has long pauses between beats.
    """
    if options.watchdog is not None:
        return options.watchdog
    memory = options.memory
    longest = max(map(_longest, program.instructions, itertools.repeat(program.params)), default=0)
    pause = 1 / memory.bandwidth if memory.bandwidth else 1
    pause += 1000 / (1000 - memory.stall_permille)
    latency = memory.read_latency + memory.write_latency
    return _WATCHDOG_FLOOR + 4 * (longest + latency) + _WATCHDOG_PAUSES * math.ceil(pause)


def _longest(instruction: Instruction, params: HardwareParams) -> int:
    return instruction_cost(instruction, params).cycles


def make_job(program: Program, options: RtlOptions, ends: Sequence[Boundary] | None = None) -> Job:
    """The bench's view of a program; `ends` are the boundaries of its layers."""
    return Job(
        word_bytes=program.params.word_bytes,
        port_bytes=program.params.port_bytes,
        memory_words=program.memory_words,
        program_word=program.instructions_at,
        instructions=len(program.instructions),
        limit=limit_of(program, options),
        watchdog=watchdog_of(program, options),
        memory=options.memory,
        boundaries=[(int(e.unit), e.count) for e in (boundaries(program) if ends is None else ends)],
    )


class RtlBackend:
    """The accelerator's RTL behind a memory model.

    Parameters
    ----------
    options
        How the RTL is simulated.
    keep_tensors
        Keep every tensor that passes through memory, not only the outputs.
    inject
        Fault injection: changes the memory image before the run.
    """

    name = "rtl"

    def __init__(
        self,
        options: RtlOptions | None = None,
        *,
        keep_tensors: bool = False,
        inject: MemoryFault | None = None,
    ) -> None:
        self.options = options if options is not None else RtlOptions()
        self._verilog = self.options.verilog_text()
        self._keep_tensors = keep_tensors
        self._inject = inject

    def run(self, program: Program, inputs: Arrays, *, progress: ProgressCallback | None = None) -> RunResult:
        """Run `program`; raises `SimulationError` with the state of every unit when it does not complete."""
        result = self.observe(program, inputs, progress=progress, log_writes=self._keep_tensors)
        return complete(program, result, self.options, local=self.logs_results(program))

    def settings_text(self) -> str:
        """Everything about this backend that a run's result depends on, but for the Verilog."""
        return f"{self.options.memory!r} {self.options.watchdog} {sources_hash()}"

    def verilog(self, program: Program) -> str:
        """The Verilog that is simulated for `program`."""
        return self._verilog if self._verilog is not None else verilog_of(program.params)

    def build(self, program: Program) -> Build:
        """The simulator for `program`, from the cache or built now."""
        bench, watch = self.options.bench, self.options.on_build
        if self._verilog is not None:
            return bench.build(self._verilog, watch)
        return build_for(bench, program.params, lambda: self.verilog(program), watch)

    def logs_results(self, program: Program) -> bool:
        """Whether tensors that never leave the scratchpad are recorded."""
        return self.options.bench.logs_results(self.verilog(program))

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

        If the simulator crashes, the error contains the state of every unit.

        With `log_writes` also every word that was stored and, on a bench with taps, written into local memories;
        `waves` are the first and last cycle to record on a bench with waves.
        """
        image = initial_memory(program, inputs)
        if self._inject is not None:
            self._inject(image)
        simulator = self.build(program)
        job = dataclasses.replace(make_job(program, self.options), log_writes=log_writes, waves=waves)
        watch = None if progress is None else _reporter(program, boundaries(program), progress)
        with self._files() as files:
            try:
                recording = record(self.options.bench, simulator, LoadedJob(job, image), files, watch)
            except StoppedSimulationError as error:
                state = describe_state(program, error.status.started, error.status.done)
                at = f"not before cycle {error.status.cycle}, with these units"
                raise SimulationError(f"{error}\n{at}:\n{state}") from None
        return run_result(program, recording, self.options.memory, simulator.seconds)

    @contextlib.contextmanager
    def _files(self) -> Iterator[RunFiles]:
        if self.options.folder is not None:
            self.options.folder.mkdir(parents=True, exist_ok=True)
            yield RunFiles(self.options.folder.resolve())
            return
        with temporary_folder("intloom-rtl-") as folder:
            yield RunFiles(folder)


def run_result(program: Program, recording: Recording, memory: MemorySettings, build_s: float) -> RunResult:
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
        dram_bytes=(counters["READ_BEATS"] + counters["WRITE_BEATS"]) * program.params.beat_bytes,
        conditions=memory.conditions(),
        counters=counters,
        memory=recording.memory,
        pulses=recording.pulses,
        origin=report.first_cycle,
        report=report,
        status=recording.status,
        snapshots=recording.snapshots,
        writes=recording.writes,
    )


def complete(program: Program, result: RunResult, options: RtlOptions, *, local: bool) -> RunResult:
    """The result with layers, and with tensors if writes were logged; raises unless the program ran to its end.

    `local` says that the log contains the results in the scratchpad.
    """
    if result.report is not None and result.status is not None:
        require_completed(program, result.report, result.status, limit_of(program, options))
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
