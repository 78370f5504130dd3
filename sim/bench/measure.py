"""Runs one workload on each bench and takes the simulated cycles a second."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from intloom.common.errors import SimulationError
from intloom.common.temporary_files import temporary_folder
from intloom.compiler.program.memory import initial_memory
from intloom.compiler.program.program import Program
from intloom.sim.result import Arrays
from intloom.sim.rtl.backend import make_job
from intloom.sim.rtl.bare import build_bare, run_bare
from intloom.sim.rtl.bench import Bench, build_for
from intloom.sim.rtl.clock_edges import stopped_shares
from intloom.sim.rtl.job import Job, RunFiles
from intloom.sim.rtl.options import RtlOptions
from intloom.sim.rtl.verilog import verilog_of

_WATCHDOG = 1 << 20


@dataclass(frozen=True)
class Speed:
    """One bench on one workload."""

    bench: str
    cycles: int
    seconds: float
    build_s: float
    stopped: Mapping[str, float] = field(default_factory=dict)
    """Share of the cycles in which the clock of each gated component was stopped; of the bare loop only."""

    @property
    def hertz(self) -> float:
        """Simulated cycles a second."""
        return self.cycles / self.seconds


def _job(program: Program) -> Job:
    return make_job(program, RtlOptions(watchdog=_WATCHDOG), ())


def measure_bare(program: Program, inputs: Arrays, repeats: int) -> Speed:
    """The bare C++ loop, the best of some runs."""
    simulator = build_bare(verilog_of(program.params))
    speeds = []
    with temporary_folder("intloom-bench-") as folder:
        files = RunFiles(folder)
        for _ in range(repeats):
            initial_memory(program, inputs).tofile(files.memory)
            result = run_bare(simulator, _job(program), files)
            if not result.finished:
                raise SimulationError(f"the bare loop did not finish {program.name!r} in {result.cycles} cycles")
            # The gates also count the few cycles before the start command.
            stopped = stopped_shares(result.clocked, result.cycles)
            speeds.append(Speed("bare loop", result.cycles, result.seconds, simulator.seconds, stopped))
    return min(speeds, key=lambda s: s.seconds)


def measure_bench(name: str, bench: Bench, program: Program, inputs: Arrays, repeats: int) -> Speed:
    """A bench, the best of some runs."""
    simulator = build_for(bench, program.params, lambda: verilog_of(program.params))
    speeds = []
    with temporary_folder("intloom-bench-") as folder:
        files = RunFiles(folder)
        for _ in range(repeats):
            initial_memory(program, inputs).tofile(files.memory)
            report = bench.run(simulator, _job(program), files)
            if not report.status["done"]:
                raise SimulationError(f"{name} did not finish {program.name!r}: {report.ended}, status {report.status}")
            speeds.append(Speed(name, report.counters["CYCLES"], report.seconds, simulator.seconds))
    return min(speeds, key=lambda s: s.seconds)
