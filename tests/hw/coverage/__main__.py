"""Coverage of the RTL by extreme, faulty and random programs: `python -m tests.hw.coverage`.

The same programs run on all hardware of `HARDWARE`, and a point is covered if one of them reaches it. The output folder
keeps the counts of each version of the RTL: a later call with other seeds adds to what earlier ones reached.
"""

from __future__ import annotations

import argparse
from collections import ChainMap
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from intloom.common import evidence
from intloom.common.atomic_write import write_text
from intloom.common.errors import SimulationError
from intloom.hw.npu import TOP_NAME, Npu
from intloom.sim.processes import Processes, Work
from intloom.sim.rtl.verilog import verilog_of
from tests.hw.coverage.collector import HARDWARE, Collector
from tests.hw.coverage.fields import cover_points
from tests.hw.coverage.steps import measure
from tests.hw.npu.coincidences import wanted_points
from tests.support.shapes import SHAPES
from tools.coverage.merge import Design, merged
from tools.coverage.summary import (
    KINDS,
    ROOT,
    SUMMARY,
    component_paths,
    missed_text,
    shares,
    tallies,
    total,
    write_summary,
)
from tools.coverage.waivers import FILE, read_waivers, unneeded


def _died(name: str) -> None:
    raise SimulationError(f"the process that measured {name} died twice")


def main() -> None:
    """Parse the command line, run, and list what was not reached."""
    parser = argparse.ArgumentParser(prog="python -m tests.hw.coverage", description=__doc__)
    parser.add_argument("hardware", nargs="*", help=f"of {', '.join(HARDWARE)}; without any: all; the list is of all")
    parser.add_argument("--first", type=int, default=0, help="seed of the first random program")
    parser.add_argument("--count", type=int, default=8, help="random programs for each hardware")
    parser.add_argument("--jobs", type=int, default=1, help="hardware that is measured at once, each in a process")
    parser.add_argument("--output", type=Path, default=Path("out/coverage"), help="folder of the list")
    parser.add_argument("--renew", action="store_true", help="only if the figures are older than the RTL")
    options = parser.parse_args()
    if options.renew and evidence.read(SUMMARY)["all"].is_current(ROOT):
        print("the coverage of the RTL is up to date")
        return
    if unknown := set(options.hardware) - set(HARDWARE):
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    options.output.mkdir(parents=True, exist_ok=True)
    seeds = range(options.first, options.first + options.count)
    work = Work[str, None](partial(measure, output=options.output, seeds=seeds), str, _died)
    # The first takes longest.
    for name, _ in work.results(options.hardware or [*HARDWARE], Processes(options.jobs)):
        print(f"{name} is measured", flush=True)
    collectors = {name: Collector(name, options.output, options.output) for name in HARDWARE}
    _report(collectors, options.output / "missed.txt")


def _report(collectors: Mapping[str, Collector], path: Path) -> None:
    points = [*cover_points(), *wanted_points(SHAPES["nano"])]
    missed = [p for p in points if not any(collector.seen[p] for collector in collectors.values())]
    designs = [Design(name, verilog_of(c.params), c.counts) for name, c in collectors.items()]
    points_of_all, waivers = merged(designs), read_waivers()
    found = tallies(points_of_all, waivers)
    write_text(path, missed_text(found, missed))
    paths = [component_paths(Npu(params), TOP_NAME) for params in HARDWARE.values()]
    covered = shares(found, dict(ChainMap(*paths)))
    for kind in KINDS:
        share = total(covered, kind)
        print(f"{kind}: {share.percent:.2f} %, {share.strict_percent:.2f} % with waived points counted as missed")
    print(f"cover points: {len(points) - len(missed)} of {len(points)}")
    print(f"not reached: {path}")
    write_summary(len(points), missed, covered)
    # Hardware without counts may have points that no other has.
    if all(design.counts for design in designs) and (rest := unneeded(points_of_all, waivers)):
        names = "".join(f"\n  {w.module} {w.kind} {w.name}" for w in rest)
        raise SystemExit(f"waivers without a point that is missed; remove them from {FILE.name}:{names}")


if __name__ == "__main__":
    main()
