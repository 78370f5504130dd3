"""Prints simulated cycles a second of every bench, and the wall time of programs given as files.

`python -m sim.bench [--preset base] [--threads N] [--json FILE] [PROGRAM.loom ...]`
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

from compiler.program.file import load
from compiler.program.program import Program, Role
from hw.spec.errors import IntloomError
from hw.spec.params import preset
from sim.backend import RtlBackend
from sim.files import write_text
from sim.result import Arrays
from sim.rtl.detailed import DetailedBench
from sim.rtl.fast import FastBench

from .measure import Speed, measure_bare, measure_bench
from .workload import dense_program

_LONG = {"side": 32, "repeats": 3}
_SHORT = {"side": 8, "repeats": 1}
"""The benches that Python clocks are too slow for the long workload."""
_BLOCKS = 4
_REPEATS = 3


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m sim.bench", description=__doc__)
    parser.add_argument(
        "programs", nargs="*", type=Path, metavar="PROGRAM.loom", help="programs to time on the fast bench"
    )
    parser.add_argument("--preset", default="base", help="hardware of the workload (default: base)")
    parser.add_argument("--threads", type=int, default=1, help="threads of the simulated model (default: 1)")
    parser.add_argument("--json", type=Path, default=Path("out/bench/speed.json"), help="where the figures go")
    return parser.parse_args()


def _random_inputs(program: Program) -> Arrays:
    random = np.random.default_rng(0)
    places = [p for p in program.places if p.role is Role.INPUT]
    return {p.name: random.integers(-128, 128, p.shape, dtype=np.int8) for p in places}


def _speeds(name: str, threads: int) -> list[Speed]:
    params = preset(name)
    long, inputs = dense_program(params, blocks=_BLOCKS, **_LONG)
    short, _ = dense_program(params, blocks=_BLOCKS, **_SHORT)
    default_flow = DetailedBench(monitors=False, everything_public=True)
    return [
        measure_bare(long, inputs, threads, _REPEATS),
        measure_bench("fast bench", FastBench(threads), long, inputs, _REPEATS),
        measure_bench("cocotb default flow", default_flow, short, inputs, 1),
        measure_bench("detailed bench", DetailedBench(), short, inputs, 1),
    ]


def _time_program(path: Path) -> dict[str, float | str]:
    program = load(path)
    start = time.monotonic()
    result = RtlBackend().run(program, _random_inputs(program))
    wall_s = time.monotonic() - start - result.build_s
    return {"program": program.name, "cycles": result.cycles, "wall_s": wall_s, "sim_hz": result.sim_hz}


def main() -> int:
    """Measure, print, and write the figures."""
    arguments = _arguments()
    speeds = _speeds(arguments.preset, arguments.threads)
    bare = speeds[0].hertz
    for s in speeds:
        print(f"{s.bench:20} {s.hertz:12,.0f} cycles/s  {s.hertz / bare:6.3f} of bare  built in {s.build_s:.1f} s")
    programs = [_time_program(p) for p in arguments.programs]
    for p in programs:
        print(f"{p['program']:20} {p['cycles']:12,} cycles in {p['wall_s']:.1f} s")
    figures = [{"bench": s.bench, "hertz": s.hertz, "cycles": s.cycles, "build_s": s.build_s} for s in speeds]
    write_text(
        arguments.json, json.dumps({"preset": arguments.preset, "benches": figures, "programs": programs}, indent=1)
    )
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except IntloomError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(int(error.exit_code))
