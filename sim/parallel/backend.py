"""The backend of time-parallel RTL runs."""

import logging
from dataclasses import replace

from intloom.common.errors import SimulationError, UsageError
from intloom.compiler.program.program import Program
from intloom.hw.spec.params import HardwareParams
from intloom.sim.parallel.plan import WARM_UP, Plan, Planner
from intloom.sim.parallel.run import ParallelRun, SegmentSettings
from intloom.sim.parallel.workers import open_workers
from intloom.sim.result import Arrays, ProgressCallback, RunResult
from intloom.sim.rtl.backend import RtlBackend, complete, limit_of, run_result, watchdog_of
from intloom.sim.rtl.options import RtlOptions

_log = logging.getLogger(__name__)


class ParallelRtlBackend(RtlBackend):
    """The accelerator's RTL, several segments of a program at once.

    The result is that of a plain run, with the same cycles, counters and trace. Where the states at a seam do not meet,
    the overlap is extended. Where they never meet, or a segment differs from the instruction simulator, the program
    runs in one simulator.

    Parameters
    ----------
    options
        How the RTL is simulated: `jobs` segments, on this machine or on the cluster `dask`.
    keep_tensors
        Keep every tensor that passes through memory, not only the outputs.
    warm_up
        Predicted cycles that a segment runs before its seam.

    Raises
    ------
    UsageError
        The memory has random stalls or an injected error.
    """

    def __init__(self, options: RtlOptions, *, keep_tensors: bool = False, warm_up: int = WARM_UP) -> None:
        super().__init__(options, keep_tensors=keep_tensors)
        _check(options)
        self._warm_up = warm_up
        self.plan: Plan | None = None
        """The cuts of the last run; None before the first one."""

    def run(self, program: Program, inputs: Arrays, *, progress: ProgressCallback | None = None) -> RunResult:
        """Run `program`; raises `SimulationError` with the state of every unit when it does not complete."""
        _check_trace(program.params)
        planner = Planner(program, self.options.memory, self._warm_up)
        self.plan = planner.plan(self.options.jobs)
        if self.plan.cuts:
            try:
                return self._run(inputs, planner, self.plan, progress)
            except SimulationError as error:
                # The message counts instructions of a segment; the plain run gives the one for the program.
                _log.warning("the program runs again in one simulator, because a segment failed: %s", error)
        self.plan = planner.plan(1)
        return super().run(program, inputs, progress=progress)

    def _run(self, inputs: Arrays, planner: Planner, plan: Plan, progress: ProgressCallback | None) -> RunResult:
        program = planner.program
        # Built here, with progress; the workers of this machine find it in the cache.
        build = None if self.options.dask else self.build(program)
        options = replace(
            self.options, limit=limit_of(program, self.options), watchdog=watchdog_of(program, self.options)
        )
        settings = SegmentSettings(verilog=self.verilog(program), options=options, log_writes=self._keep_tensors)
        with open_workers(options.jobs, options.dask) as workers:
            self.plan, recording = ParallelRun(planner, inputs, workers, settings, progress).run(plan)
        result = run_result(program, recording, self.options.memory, build.seconds if build else 0.0)
        return complete(program, result, self.options, local=self.logs_results(program))


def _check(options: RtlOptions) -> None:
    memory = options.memory
    if memory.stall_permille or memory.error is not None:
        raise UsageError(
            "parallel jobs need a memory without random stalls and bus errors: a stall depends on all earlier cycles; "
            "remove --stalls, or use one job"
        )
    if options.folder is not None:
        raise UsageError("parallel jobs keep no files of a run; remove the folder, or use one job")


def _check_trace(params: HardwareParams) -> None:
    if not params.trace:
        raise UsageError("parallel jobs need hardware with a trace port; set parameter trace, or use one job")
