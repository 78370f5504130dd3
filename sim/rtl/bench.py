"""The interface of every RTL bench: build a simulator, run a job on it, return the host driver's report."""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from intloom.common.errors import SimulationError
from intloom.hw.spec.params import HardwareParams
from intloom.sim.host.run_program import HostReport
from intloom.sim.rtl.build import Build, BuildWatch
from intloom.sim.rtl.job import JOB_VARIABLE, Job, RunFiles, write_job
from intloom.sim.rtl.process import cocotb_environment, log_tail, run_simulator
from intloom.sim.rtl.status import STATUS_BYTES, Status, read_status
from intloom.sim.rtl.verilog import is_generated

Watch = Callable[[Status], None]


class Bench(Protocol):
    """A simulator with its testbench."""

    name: str

    def logs_results(self, verilog: str) -> bool:
        """Whether the write log contains the results that are written into the scratchpad."""

    def compiled_ahead(self) -> AbstractContextManager[object]:
        """Compile, while the block runs, what a simulator of any Verilog needs; a build in the block waits for it."""

    def build(self, verilog: str, watch: BuildWatch | None = None) -> Build:
        """The simulator of this Verilog, from the cache or built now; `watch` gets the progress of the build."""

    def run(self, simulator: Build, job: Job, files: RunFiles, watch: Watch | None = None) -> HostReport:
        """Run `job`; the memory file is changed in place; `watch` gets the status several times a second."""


def build_for(
    bench: Bench, params: HardwareParams, verilog: Callable[[], str], watch: BuildWatch | None = None
) -> Build:
    """The simulator of the hardware `params`, whose `verilog` is generated and built if it is not in the cache."""
    # Elaboration uses one core.
    with nullcontext() if is_generated(params) else bench.compiled_ahead():
        return bench.build(verilog(), watch)


def prepare(job: Job, files: RunFiles) -> None:
    """Write the job and the settings, and clear the status; the memory file must exist already."""
    files.status.write_bytes(bytes(STATUS_BYTES))
    # A kept folder may hold an earlier run; its result must not pass for this one's.
    for stale in (files.result, files.trace, files.snapshots):
        stale.unlink(missing_ok=True)
    write_job(job, files)


def run_cocotb(
    command: list[str],
    top_and_test: tuple[str, str],
    job: Job,
    files: RunFiles,
    watch: Watch | None,
    verilator: bool = True,
) -> HostReport:
    """Run a simulator whose cocotb test drives the host; raises `SimulationError` when the test wrote no report."""
    prepare(job, files)
    env = cocotb_environment(*top_and_test, files.folder, verilator)
    env[JOB_VARIABLE] = str(files.python_job)
    look = None if watch is None else (lambda: watch(read_status(files.status)))
    run_simulator(command, files.folder, files.log, env, look)
    if not files.result.exists():
        raise SimulationError(f"the simulator ended without a result:\n{log_tail(files.log)}")
    values: dict[str, Any] = json.loads(files.result.read_text(encoding="utf-8"))
    return HostReport(**values)
