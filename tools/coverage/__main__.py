"""Coverage of the RTL by extreme, faulty and random programs: `python -m tools.coverage`.

The output folder keeps the counts, so that a later call with other seeds adds to what earlier ones reached.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from intloom.common.atomic_write import write_text
from intloom.common.temporary_files import temporary_folder
from intloom.hw.spec.identity import begin
from intloom.hw.spec.isa import COUNT_BITS, Instruction, Kind, encode, make
from intloom.hw.spec.regs import REGISTERS
from intloom.sim.random_programs.compare import compare
from intloom.sim.random_programs.program import RandomProgram, random_program
from intloom.sim.rtl.bare import COVERAGE_VARIABLE, bare_plan
from intloom.sim.rtl.build import Build, build
from intloom.sim.rtl.verilog import verilog_of
from tests.sim.random_programs import top_bits
from tests.sim.random_programs.extremes import WIDE, extreme_program
from tests.sim.random_programs.short_runs import altered, checked, ending, waits
from tools.coverage.counts import add_up, load, save
from tools.coverage.fields import cover_points, reached
from tools.coverage.page import KINDS, page, tallies, total
from tools.coverage.waivers import read_waivers

# Verilator 5.48 crashes on Amaranth's Verilog with --coverage, which includes FSM coverage.
_FLAGS = ("--coverage-line", "--coverage-toggle")
_STALLS = (0, 100, 300)
_READ = tuple(register.name for register in REGISTERS)


class Collector:
    """Runs programs and adds up what they reach."""

    def __init__(self, folder: Path, runs: Path) -> None:
        self._points, self._reached, self._runs = folder / "points.json", folder / "reached.json", runs
        self.counts = load(self._points)
        self.seen: Counter[str] = Counter(json.loads(self._reached.read_text()) if self._reached.exists() else {})
        self._simulator: Build = build(bare_plan(verilog_of(WIDE), optimize="-O1", flags=_FLAGS))

    def run(self, program: RandomProgram, stalls: int = 0) -> None:
        """Run a program that ends well."""
        found = compare(program, self._simulator, stalls)
        if found.problem:
            raise SystemExit(f"seed {program.seed}: {found.problem}")
        instructions: list[Instruction] = program.instructions()
        self.seen.update(reached(instructions))
        self._collect()

    def stop(self, program: bytes) -> None:
        """Run a program that ends with an error, and read every register."""
        ending(self._simulator, WIDE, program, _READ)
        self._collect()

    def _collect(self) -> None:
        for path in self._runs.glob("*.dat"):
            self.counts.update(add_up([path]))
            path.unlink()

    def save(self) -> None:
        """Keep the counts."""
        save(self.counts, self._points)
        write_text(self._reached, json.dumps(self.seen))


def _faulty_programs() -> Iterator[bytes]:
    """Illegal opcodes and fields, waits that never end, addresses past the scratchpad."""
    for kind in (Kind.LOAD, Kind.CONV, Kind.VADD, Kind.STORE):
        yield checked(WIDE, altered(make(kind), "opcode", 7))
        yield checked(WIDE, altered(make(kind), "opcode", 2))
    yield checked(WIDE, altered(begin(WIDE), "version", 3))
    for name, i in islice(waits(), 0, None, 3):
        yield checked(WIDE, altered(i, name, COUNT_BITS - 1))
    for name, fault in islice(top_bits.faulty(), 0, None, 2):
        yield checked(WIDE, altered(fault.instruction, name, fault.bit))
    yield checked(WIDE)[:-1] + b"\xff"
    yield checked(WIDE, *[encode(make(Kind.VTABLE))] * 3)


def main() -> None:
    """Parse the command line, run, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m tools.coverage", description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="seed of the first random program")
    parser.add_argument("--count", type=int, default=50, help="random programs")
    parser.add_argument("--output", type=Path, default=Path("out/coverage"), help="folder of the page")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    with temporary_folder("coverage") as runs:
        os.environ[COVERAGE_VARIABLE] = str(runs)
        collector = Collector(options.output, runs)
        if not collector.seen:
            collector.run(extreme_program(WIDE, [i for _, i in top_bits.wide_program()]))
            for code in _faulty_programs():
                collector.stop(code)
            collector.save()
        for seed in range(options.first, options.first + options.count):
            collector.run(random_program(seed, WIDE), _STALLS[seed % len(_STALLS)])
            collector.save()
    _report(collector, options.output / "index.html")


def _report(collector: Collector, path: Path) -> None:
    waivers, points = read_waivers(), [*cover_points()]
    write_text(path, page(collector.counts, waivers, points, collector.seen))
    found = tallies(collector.counts, waivers)
    for kind in KINDS:
        print(f"{kind}: {total(found, kind).percent:.1f} %")
    print(f"cover points: {sum(bool(collector.seen[p]) for p in points)} of {len(points)}")
    print(path)


if __name__ == "__main__":
    main()
