"""The bare loop: accelerator and memory model in plain C++; the upper bound of simulation speed."""

from __future__ import annotations

import json
from dataclasses import dataclass

from intloom.sim.rtl.bench import prepare
from intloom.sim.rtl.build import FASTEST, Build, BuildPlan, build
from intloom.sim.rtl.fast import ENVIRONMENT_SOURCES, thread_flags
from intloom.sim.rtl.job import Job, RunFiles
from intloom.sim.rtl.ports import TOP
from intloom.sim.rtl.process import run_simulator
from intloom.sim.rtl.shell import bare_ports


@dataclass(frozen=True)
class BareResult:
    """Speed of the bare loop."""

    cycles: int
    seconds: float
    finished: bool
    violation: str = ""
    """The first AXI rule that the accelerator broke; empty if none."""
    registers: tuple[int, ...] = ()
    """Values of `job.registers` at the end."""

    @property
    def hertz(self) -> float:
        """Simulated cycles a second."""
        return self.cycles / self.seconds


def bare_plan(verilog: str, threads: int = 1, *, optimize: str = FASTEST) -> BuildPlan:
    """The bare C++ loop around the accelerator in `verilog`."""
    return BuildPlan(
        name="bare",
        top=TOP,
        generated={"npu.v": verilog, "ports.h": bare_ports(verilog)},
        cpp=("bare_main.cpp", *ENVIRONMENT_SOURCES),
        verilator_flags=("--no-timing", *thread_flags(threads)),
        optimize=optimize,
    )


def build_bare(verilog: str, threads: int = 1, *, optimize: str = FASTEST) -> Build:
    """The bare loop, built or from the cache."""
    return build(bare_plan(verilog, threads, optimize=optimize))


def run_bare(simulator: Build, job: Job, files: RunFiles) -> BareResult:
    """Run `job` on a built bare loop; the memory file is changed in place."""
    prepare(job, files)
    run_simulator([str(simulator.binary), str(files.job)], files.folder, files.log, {})
    values = json.loads(files.log.read_text(encoding="utf-8").splitlines()[-1])
    return BareResult(**values | {"registers": tuple(values["registers"])})
