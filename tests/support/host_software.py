"""Host software in C on the simulated accelerator: the fast bench's simulator calls it instead of Python."""

import json
from dataclasses import dataclass
from pathlib import Path

from intloom.common.errors import SimulationError
from intloom.sim.rtl.bench import prepare
from intloom.sim.rtl.build import Build
from intloom.sim.rtl.job import Job, RunFiles
from intloom.sim.rtl.own_sources import SOURCES
from intloom.sim.rtl.process import cocotb_environment, log_tail, run_simulator
from intloom.sim.rtl.shell import SHELL_TOP

HOST_HEADERS = SOURCES
"""Folder of `host_machine.h`, which declares what the host software gets."""


@dataclass(frozen=True)
class HostResult:
    """End of a run of host software."""

    result: int
    """What its `host_main` returned."""
    cycles: int
    violation: bool
    """The accelerator broke a rule of AXI."""


def run_host_software(simulator: Build, library: Path, job: Job, files: RunFiles) -> HostResult:
    """Call `host_main` of a shared library on a simulator of the fast bench; the memory file is changed in place."""
    prepare(job, files)
    command = [str(simulator.binary), f"+job={files.job}", f"+host={library.absolute()}"]
    run_simulator(command, files.folder, files.log, cocotb_environment(SHELL_TOP, "", files.folder))
    # Clock gates print their numbers after it.
    lines = [line for line in files.log.read_text(encoding="utf-8").splitlines() if line.startswith('{"result"')]
    if not lines:
        raise SimulationError(f"the simulator ended without a result:\n{log_tail(files.log)}")
    return HostResult(**json.loads(lines[-1]))
