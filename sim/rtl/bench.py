"""Running a job on a simulator."""

import json
from collections.abc import Callable
from typing import Any

from intloom.common.errors import SimulationError
from intloom.sim.host.run_program import HostReport
from intloom.sim.rtl.job import JOB_VARIABLE, Job, RunFiles, write_job
from intloom.sim.rtl.process import cocotb_environment, log_tail, run_simulator
from intloom.sim.rtl.status import STATUS_BYTES, Status, read_status

Watch = Callable[[Status], None]


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
) -> HostReport:
    """Run a simulator whose cocotb test drives the host; raises `SimulationError` when the test wrote no report."""
    prepare(job, files)
    env = cocotb_environment(*top_and_test, files.folder)
    env[JOB_VARIABLE] = str(files.python_job)
    look = None if watch is None else (lambda: watch(read_status(files.status)))
    run_simulator(command, files.folder, files.log, env, look)
    if not files.result.exists():
        raise SimulationError(f"the simulator ended without a result:\n{log_tail(files.log)}")
    values: dict[str, Any] = json.loads(files.result.read_text(encoding="utf-8"))
    return HostReport(**values)
