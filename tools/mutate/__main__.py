"""How many of a few hundred faults the tests of a component show: `python -m tools.mutate requantizer`."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tools.mutate.netlist import is_harmless, make_mutants
from tools.mutate.record import COMPONENT, RECORDS
from tools.mutate.replay import seen_faults


@dataclass(frozen=True)
class Target:
    """A component and the tests that simulate it."""

    component: str
    tests: str


TARGETS = {
    "requantizer": Target(
        "intloom.hw.mac.epilogue.requantizer:RequantizerLane", "tests/hw/mac/epilogue/test_requantizer.py"
    ),
    "scale": Target(
        "intloom.hw.mac.epilogue.scale_normalizer:ScaleNormalizer", "tests/hw/mac/epilogue/test_scale_normalizer.py"
    ),
    "bursts": Target("intloom.hw.dma.bursts:BurstSplitter", "tests/hw/dma/test_bursts.py"),
    "runs": Target("intloom.hw.dma.runs:RunWalker", "tests/hw/dma/test_runs.py"),
    "addresses": Target("intloom.hw.dma.address_walker:AddressWalker", "tests/hw/dma/test_address_walker.py"),
    "load": Target("intloom.hw.dma.load:LoadUnit", "tests/hw/dma/test_load.py"),
    "store": Target("intloom.hw.dma.store:StoreUnit", "tests/hw/dma/test_store.py"),
    "scratchpad": Target("intloom.hw.memory.scratchpad:Scratchpad", "tests/hw/memory/test_scratchpad.py"),
}


def record(target: Target, folder: Path) -> Path:
    """Run the tests with the recorder; returns the folder of the netlist with the longest records."""
    environment = {**os.environ, COMPONENT: target.component, RECORDS: str(folder), "INTLOOM_SEED": "1"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "tools.mutate.record",
        "-p",
        "no:cacheprovider",
        target.tests,
    ]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    netlists = [f for f in folder.iterdir() if f.is_dir()]
    if done.returncode or not netlists:
        raise SystemExit(f"the tests must pass and simulate {target.component} itself:\n{done.stdout[-2000:]}")
    return max(netlists, key=lambda f: sum(r.stat().st_size for r in f.glob("*.record")))


def run(name: str, count: int, seed: int, folder: Path) -> int:
    """Mutate one target, print the score and every hole; returns the number of holes."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    netlist = record(TARGETS[name], folder)
    mutations = make_mutants(netlist, count, seed)
    seen = seen_faults(netlist, len(mutations))
    survivors = [m for m, s in zip(mutations, seen, strict=True) if not s]
    holes = [m for m in survivors if not is_harmless(netlist, m)]
    harmless = len(survivors) - len(holes)
    score = 100 * sum(seen) / max(1, len(mutations) - harmless)
    print(f"{name}: {len(mutations)} faults, {sum(seen)} seen, {harmless} harmless, {len(holes)} holes: {score:.1f} %")
    for hole in holes:
        print(f"  not seen: {hole}")
    return len(holes)


def main() -> None:
    """Parse the command line and run the targets."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutate", description=__doc__)
    parser.add_argument("targets", nargs="*", default=list(TARGETS), help=f"some of {', '.join(TARGETS)}")
    parser.add_argument("--count", type=int, default=300, help="faults per component")
    parser.add_argument("--seed", type=int, default=1, help="chooses the faults")
    parser.add_argument("--output", type=Path, default=Path("out/mutate"), help="folder for records and netlists")
    options = parser.parse_args()
    if unknown := set(options.targets) - set(TARGETS):
        parser.error(f"targets must be some of {', '.join(TARGETS)}, not {', '.join(sorted(unknown))}")
    for name in options.targets:
        run(name, options.count, options.seed, options.output / name)


if __name__ == "__main__":
    main()
