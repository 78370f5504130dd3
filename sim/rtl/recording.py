"""One simulation of the RTL: from a memory image and a job to everything that the bench recorded."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from intloom.common.errors import SimulationError
from intloom.sim.host.run_program import HostReport
from intloom.sim.rtl.bench import Watch
from intloom.sim.rtl.build import Build
from intloom.sim.rtl.clock_edges import clock_edges
from intloom.sim.rtl.fast import FastBench
from intloom.sim.rtl.job import Job, RunFiles
from intloom.sim.rtl.process import SimulatorEndedError
from intloom.sim.rtl.status import Pulses, Snapshot, Status, read_pulses, read_snapshots, read_status
from intloom.sim.rtl.write_log import read_writes

BUS_LAYOUT = np.dtype(
    [("cycle", "<u8"), ("address", "<u8"), ("write", "<u4"), ("beats", "<u4"), ("credit", "<i8")],
)
"""The record of a burst; see csrc/bus_log.h."""


@dataclass(frozen=True, eq=False)
class LoadedJob:
    """A job and the memory that it starts with, as plain data for any process."""

    job: Job
    image: NDArray[np.uint8]


@dataclass(frozen=True, eq=False, kw_only=True)
class Recording:
    """Everything that a bench recorded. It does not depend on the program, so that any process can make it."""

    report: HostReport
    status: Status
    memory: NDArray[np.uint8]
    pulses: Pulses
    snapshots: tuple[Snapshot, ...]
    writes: NDArray[np.void] | None
    """The write log, where the job asked for it."""
    bursts: NDArray[np.void] | None
    """All bursts on the bus, where the job asked for them."""
    wall_s: float
    clocked: Mapping[str, int] = field(default_factory=dict)
    """Clock edges of each gated component; empty where clocks are not gated."""


class StoppedSimulationError(SimulationError):
    """The simulator ended before the program; `status` is its last status block."""

    def __init__(self, message: str, status: Status, killed: bool) -> None:
        super().__init__(message)
        self.status = status
        self.killed = killed
        """A signal ended the process, so another attempt may succeed."""


def record(
    bench: FastBench, simulator: Build, loaded: LoadedJob, files: RunFiles, watch: Watch | None = None
) -> Recording:
    """Run a job on a built simulator; raises `StoppedSimulationError` when the simulator ends early."""
    job = loaded.job
    # The simulator maps this file, so the memory after the run needs no transfer back.
    loaded.image.tofile(files.memory)
    start = time.monotonic()
    try:
        report = bench.run(simulator, job, files, watch)
    except SimulationError as error:
        # The status file is mapped by the simulator, so it survives a crash.
        killed = isinstance(error, SimulatorEndedError) and error.killed
        raise StoppedSimulationError(str(error), read_status(files.status), killed) from None
    return Recording(
        report=report,
        status=read_status(files.status),
        memory=np.fromfile(files.memory, np.uint8),
        pulses=read_pulses(files.trace),
        snapshots=tuple(read_snapshots(files.snapshots)),
        writes=read_writes(files.writes, job.word_bytes) if job.log_writes else None,
        bursts=np.fromfile(files.bursts, BUS_LAYOUT) if job.log_bus else None,
        wall_s=time.monotonic() - start,
        clocked=clock_edges(files.log.read_text(encoding="utf-8", errors="replace")),
    )
