"""The bare loop: accelerator and memory model in plain C++; the upper bound of simulation speed."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from intloom.sim.rtl.bench import prepare
from intloom.sim.rtl.build import Build, BuildPlan, build
from intloom.sim.rtl.clock_edges import COUNT_FLAG, clock_edges
from intloom.sim.rtl.job import Job, RunFiles
from intloom.sim.rtl.own_sources import FASTEST
from intloom.sim.rtl.ports import TOP
from intloom.sim.rtl.process import run_simulator
from intloom.sim.rtl.shell import LOG_TOP, bare_ports, log_shell

COVERAGE_VARIABLE = "INTLOOM_COVERAGE"
"""Environment variable with the folder in which a simulator that is built for coverage leaves a file for each run."""
_RANDOM_START = ("--x-initial", "unique", "--x-assign", "unique")
"""Verilator's flags for random values of all registers and memories without initial values."""


@dataclass(frozen=True)
class BareResult:
    """Speed of the bare loop."""

    cycles: int
    seconds: float
    finished: bool
    clocked: Mapping[str, int] = field(default_factory=dict)
    """Clock edges that passed the gate of each gated component."""
    violation: str = ""
    """The first AXI rule that the accelerator broke; empty if none."""
    read_beats: int = 0
    write_beats: int = 0
    """Beats that the memory model transferred, of each direction."""
    registers: tuple[int, ...] = ()
    """Values of `job.registers` at the end."""

    @property
    def hertz(self) -> float:
        """Simulated cycles a second."""
        return self.cycles / self.seconds


def without_initial_values(verilog: str) -> str:
    """The Verilog without initial values of registers, as an ASIC starts; only a reset gives them values."""
    return re.sub(r"^(\s*reg .*?\S)\s+= .*;$", r"\1 ;", verilog, flags=re.MULTILINE)


def bare_plan(
    verilog: str,
    *,
    optimize: str = FASTEST,
    random_start: bool = False,
    taps: bool = False,
    flags: tuple[str, ...] = (),
) -> BuildPlan:
    """The bare C++ loop around the accelerator in `verilog`; with `random_start` registers have no initial values.

    With `taps`, jobs with `log_writes` record writes into all memories, and the local memories and tables at the end.
    """
    generated = {
        "npu.v": without_initial_values(verilog) if random_start else verilog,
        "ports.h": bare_ports(verilog),
    }
    if taps:
        generated["logged.sv"] = log_shell(verilog)
    return BuildPlan(
        name="bare",
        top=LOG_TOP if taps else TOP,
        generated=generated,
        cpp=("bare_main.cpp",),
        verilator_flags=(
            "--no-timing",
            COUNT_FLAG,
            *(_RANDOM_START if random_start else ()),
            *flags,
        ),
        optimize=optimize,
    )


def build_bare(verilog: str, *, optimize: str = FASTEST, random_start: bool = False, taps: bool = False) -> Build:
    """The bare loop, built or from the cache."""
    return build(bare_plan(verilog, optimize=optimize, random_start=random_start, taps=taps))


def run_bare(simulator: Build, job: Job, files: RunFiles, start_seed: int = 1) -> BareResult:
    """Run `job` on a built bare loop; the memory file is changed in place.

    On a simulator with a random start, `start_seed` gives the values of registers and memories before the reset.
    """
    prepare(job, files)
    arguments = [str(files.job), f"+verilator+seed+{start_seed}", "+verilator+rand+reset+2"]
    environment = {name: os.environ[name] for name in (COVERAGE_VARIABLE,) if name in os.environ}
    run_simulator([str(simulator.binary), *arguments], files.folder, files.log, environment)
    log = files.log.read_text(encoding="utf-8")
    (figures,) = (json.loads(line) for line in log.splitlines() if line.startswith("{"))
    return BareResult(**figures | {"registers": tuple(figures["registers"]), "clocked": clock_edges(log)})
