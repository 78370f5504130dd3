"""The fast bench and the bare loop: what to build, and one run of each."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hw.spec.errors import SimulationError

from .build import Build, BuildPlan, build
from .fast_test import SETTINGS_VARIABLE
from .job import Job, RunFiles, write_job
from .ports import TOP
from .process import cocotb_environment, log_tail, run_simulator
from .shell import SHELL_TOP, bare_ports, bench_shell, visibility
from .status import STATUS_BYTES, Pulses, Snapshot, Status, read_pulses, read_snapshots, read_status

_WORLD = ("mapping.cpp", "memory.cpp", "recorder.cpp")
_TEST_MODULE = "sim.rtl.fast_test"


@dataclass(frozen=True, kw_only=True)
class RawResult:
    """What a bench found, before anyone has judged it."""

    ended: str
    """`interrupt`, `timeout` or `violation`."""
    fingerprint: int
    seconds: float
    first_cycle: int
    last_cycle: int
    status: dict[str, int]
    error_index: int
    counters: dict[str, int]
    pulses: Pulses
    progress: Status
    snapshots: list[Snapshot] = field(default_factory=list)


def fast_plan(verilog: str, threads: int = 1) -> BuildPlan:
    """The fast bench around the accelerator in `verilog`."""
    import cocotb_tools.config

    shell = bench_shell(verilog)
    libs = cocotb_tools.config.libs_dir
    flags = ("--vpi", "--no-timing", *(("--threads", str(threads)) if threads > 1 else ()))
    return BuildPlan(
        name="fast",
        top=SHELL_TOP,
        generated={"npu.v": verilog, "bench.sv": shell, "visible.vlt": visibility(shell)},
        cpp=("fast_main.cpp", "dpi.cpp", *_WORLD),
        verilator_flags=flags,
        link_flags=(f"-Wl,-rpath,{libs}", f"-L{libs}", "-lcocotbvpi_verilator"),
    )


def bare_plan(verilog: str, threads: int = 1) -> BuildPlan:
    """The bare C++ loop around the accelerator in `verilog`."""
    flags = ("--no-timing", *(("--threads", str(threads)) if threads > 1 else ()))
    return BuildPlan(
        name="bare",
        top=TOP,
        generated={"npu.v": verilog, "ports.h": bare_ports(verilog)},
        cpp=("bare_main.cpp", *_WORLD),
        verilator_flags=flags,
    )


def build_fast(verilog: str, threads: int = 1) -> Build:
    """The fast bench, built or from the cache."""
    return build(fast_plan(verilog, threads))


def build_bare(verilog: str, threads: int = 1) -> Build:
    """The bare loop, built or from the cache."""
    return build(bare_plan(verilog, threads))


def prepare(job: Job, files: RunFiles) -> None:
    """Write everything that a run reads but the memory file, which must be there already."""
    files.status.write_bytes(bytes(STATUS_BYTES))
    files.result.unlink(missing_ok=True)
    write_job(job, files)


def run_fast(simulator: Build, job: Job, files: RunFiles, watch: Callable[[Status], None] | None = None) -> RawResult:
    """Run `job` on a built fast bench; the memory file is changed in place."""
    prepare(job, files)
    env = cocotb_environment(SHELL_TOP, _TEST_MODULE, files.folder)
    env[SETTINGS_VARIABLE] = str(files.settings)
    look = None if watch is None else (lambda: watch(read_status(files.status)))
    run_simulator([str(simulator.binary), f"+job={files.job}"], files.folder, files.log, env, look)
    return read_raw(files)


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


@dataclass(frozen=True)
class BareResult:
    """Speed of the bare loop."""

    cycles: int
    seconds: float
    finished: bool

    @property
    def hertz(self) -> float:
        """Simulated cycles a second."""
        return self.cycles / self.seconds


def run_bare(simulator: Build, job: Job, folder: Path) -> BareResult:
    """Run `job` on a built bare loop."""
    files = RunFiles(folder)
    prepare(job, files)
    run_simulator([str(simulator.binary), str(files.job)], folder, files.log, {})
    return BareResult(**json.loads(files.log.read_text(encoding="utf-8").splitlines()[-1]))
