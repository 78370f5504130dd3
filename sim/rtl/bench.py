"""What every RTL bench has in common: one way to build, one way to run, one form of result."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from intloom.common.errors import SimulationError
from intloom.sim.rtl.build import Build, BuildWatch
from intloom.sim.rtl.job import Job, RunFiles, write_job
from intloom.sim.rtl.process import log_tail
from intloom.sim.rtl.status import STATUS_BYTES, Pulses, Snapshot, Status, read_pulses, read_snapshots, read_status

Watch = Callable[[Status], None]


@dataclass(frozen=True, kw_only=True)
class RawResult:
    """What a bench found, before anyone has judged it."""

    ended: str
    """`interrupt`, `timeout` or `violation`."""
    fingerprint: int
    seconds: float
    """From the start command to the end of the run, inside the simulator."""
    first_cycle: int
    last_cycle: int
    status: dict[str, int]
    error_index: int
    counters: dict[str, int]
    pulses: Pulses
    progress: Status
    snapshots: list[Snapshot] = field(default_factory=list)


class Bench(Protocol):
    """One way of simulating the accelerator."""

    name: str

    def build(self, verilog: str, watch: BuildWatch | None = None) -> Build:
        """The simulator of this Verilog, from the cache or built now, when `watch` is told how far that is."""

    def run(self, simulator: Build, job: Job, files: RunFiles, watch: Watch | None = None) -> RawResult:
        """Run `job`; the memory file is changed in place; `watch` sees the status a few times a second."""


def prepare(job: Job, files: RunFiles) -> None:
    """Write everything that a run reads but the memory file, which must be there already."""
    files.status.write_bytes(bytes(STATUS_BYTES))
    for stale in (files.result, files.trace, files.snapshots):
        stale.unlink(missing_ok=True)
    write_job(job, files)


def read_raw(files: RunFiles) -> RawResult:
    """The result of a finished run; `SimulationError` when the bench wrote none."""
    if not files.result.exists():
        raise SimulationError(f"the simulator ended without a result:\n{log_tail(files.log)}")
    values: dict[str, Any] = json.loads(files.result.read_text(encoding="utf-8"))
    return RawResult(
        **values,
        pulses=read_pulses(files.trace),
        progress=read_status(files.status),
        snapshots=read_snapshots(files.snapshots),
    )
