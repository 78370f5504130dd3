"""Runs one workload on each bench and takes the simulated cycles a second."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from intloom.common.errors import SimulationError
from intloom.common.temporary_files import temporary_folder
from intloom.compiler.program.memory import initial_memory
from intloom.compiler.program.program import Program
from intloom.sim.bench.baseline import Baseline
from intloom.sim.result import Arrays
from intloom.sim.rtl.backend import make_job
from intloom.sim.rtl.bare import build_bare, run_bare
from intloom.sim.rtl.clock_edges import stopped_shares
from intloom.sim.rtl.fast import FastBench, build_for
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


def measure_bare(program: Program, inputs: Arrays, repeats: int, baseline: Baseline | None = None) -> Iterator[Speed]:
    """The bare C++ loop, the best of some runs; then that of the `baseline`, run alternately with the first."""
    designs = {"bare loop": Baseline(verilog_of(program.params))}
    if baseline is not None:
        designs["bare loop, baseline"] = baseline
    simulators = {name: build_bare(design.verilog) for name, design in designs.items()}
    speeds: dict[str, list[Speed]] = {name: [] for name in designs}
    with temporary_folder("intloom-bench-") as folder:
        files = RunFiles(folder)
        for name, simulator in [*simulators.items()] * repeats:
            job, workload = _job(program), designs[name].workload
            if workload is None:
                initial_memory(program, inputs).tofile(files.memory)
            else:
                workload.write_memory(files)
                job = workload.job(job)
            result = run_bare(simulator, job, files)
            if not result.finished:
                raise SimulationError(f"the {name} did not finish {program.name!r} in {result.cycles} cycles")
            # The gates also count the few cycles before the start command.
            stopped = stopped_shares(result.clocked, result.cycles)
            speeds[name].append(Speed(name, result.cycles, result.seconds, simulator.seconds, stopped))
    for runs in speeds.values():
        yield min(runs, key=lambda s: s.seconds)


def measure_bench(name: str, bench: FastBench, program: Program, inputs: Arrays, repeats: int) -> Speed:
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
