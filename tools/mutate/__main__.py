"""How many of a few hundred faults the tests of each component find: `python -m tools.mutate dma.load:LoadUnit`."""

from __future__ import annotations

import argparse
import math
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from tools.mutate.netlist import harmless, make_mutants
from tools.mutate.record import COMPONENT, RECORDS, TOP
from tools.mutate.replay import read_ports, replay
from tools.mutate.score import SCORES, Score, read_scores, sources_key, write_score
from tools.mutate.targets import NOT_MUTATED, targets


def record(component: str, tests: str, folder: Path) -> list[Path]:
    """Run the tests with the recorder; returns the largest netlist and the one with the widest ports.

    In small ones parts of the component are out of reach, such as buffers for more bursts than can be outstanding.
    """
    environment = {**os.environ, COMPONENT: f"intloom.hw.{component}", RECORDS: str(folder), "INTLOOM_SEED": "1"}
    plugins = ["-p", "tools.mutate.record", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", "-q", *plugins, tests]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    netlists = [f for f in folder.iterdir() if f.is_dir()]
    if done.returncode or not netlists:
        raise SystemExit(f"the tests must pass and simulate {component} itself:\n{done.stdout[-2000:]}")

    def size(netlist: Path) -> tuple[int, int]:
        return (netlist / f"{TOP}.il").stat().st_size, sum(r.stat().st_size for r in netlist.glob("*.record"))

    largest = max(netlists, key=size)
    widest = max(netlists, key=lambda f: (sum(port.width for port in read_ports(f)), size(f)))
    return sorted({largest, widest})


def run(component: str, tests: str, count: int, seed: int, folder: Path) -> Score:
    """Mutate one component and print the faults that its tests do not find."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    score = Score(sources_key(component, tests))
    for netlist in record(component, tests, folder):
        mutations = make_mutants(netlist, count, seed)
        replayed = replay(netlist, len(mutations))
        seen = replayed.seen
        if replayed.left_out:
            print(f"  {replayed.left_out} of {replayed.records} records are of tests that set registers inside")
        survivors = [m for m, s in zip(mutations, seen, strict=True) if not s]
        holes = [m for m, same in zip(survivors, harmless(netlist, survivors), strict=True) if not same]
        score = score.plus(faults=len(mutations), found=sum(seen), harmless=len(survivors) - len(holes))
        for hole in holes:
            print(f"  not found: {hole}")
    print(
        f"{component}: {score.faults} faults, {score.found} found, {score.harmless} harmless: {score.percent:.1f} %",
        flush=True,
    )
    return score


def _never_scored_first(known: Iterable[str]) -> list[str]:
    """Components in the order in which they are measured: a night may not suffice for all."""
    scores = read_scores()
    return sorted(known, key=lambda name: name in scores)


def main() -> None:
    """Parse the command line and mutate the components."""
    known = targets()
    parser = argparse.ArgumentParser(prog="python -m tools.mutate", description=__doc__)
    parser.add_argument("components", nargs="*", help="such as dma.load:LoadUnit; without any: all")
    parser.add_argument("--count", type=int, default=100, help="faults for each netlist of a component")
    parser.add_argument("--seed", type=int, default=1, help="chooses the faults")
    parser.add_argument("--resume", action="store_true", help="leave out components whose score is up to date")
    parser.add_argument("--minutes", type=float, default=math.inf, help="start no component after this time")
    parser.add_argument("--output", type=Path, default=Path("out/mutate"), help="folder for records and netlists")
    options = parser.parse_args()
    if unknown := set(options.components) - set(known):
        reasons = "".join(f"\n{name}: {NOT_MUTATED[name]}" for name in unknown if name in NOT_MUTATED)
        parser.error(f"there are no mutations of {', '.join(sorted(unknown))}{reasons}")
    failed = []
    deadline = time.monotonic() + 60 * options.minutes
    for name in options.components or _never_scored_first(known):
        if time.monotonic() > deadline:
            break
        if options.resume and name in (scores := read_scores()) and scores[name].key == sources_key(name, known[name]):
            continue
        folder = options.output / name.replace(":", ".")
        try:
            write_score(SCORES, name, run(name, known[name], options.count, options.seed, folder))
        except SystemExit as problem:
            # The other components are measured all the same.
            print(f"{name}: {problem}", flush=True)
            failed.append(name)
    if failed:
        sys.exit(f"no score of {', '.join(failed)}")


if __name__ == "__main__":
    main()
