"""The part of `intloom regress nightly` that needs a checkout: all tests, coverage, mutations.

`python -m tools.nightly FOLDER`, with the output folder of the regression.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from intloom.common import evidence

ROOT = Path(__file__).parents[1]
RUNS = ROOT / "docs" / "data" / "long-runs.json"
RECORDED = ("random", "soak")
"""Suites whose last run is recorded."""
MUTATION_MINUTES = 30
"""Components are measured in turn over several nights; see `tools.mutate`."""
ALL_TESTS = "nightly or not evidence"
"""Expression of pytest: the tests of `make test`, and the full sizes, marked `nightly`, that it leaves out."""

Step = tuple[str, ...]
"""A module to run and its arguments."""


def stages(today: date) -> list[list[Step]]:
    """Steps of a stage run at the same time. The date is the seed: every night draws other mutations."""
    return [
        [("tools.python_coverage", "--erase", "-n", "2", "--dist", "worksteal", "-m", ALL_TESTS)],
        # One core each.
        [("tests.hw.coverage",), ("tools.mutate", "--minutes", str(MUTATION_MINUTES), "--seed", f"{today:%Y%m%d}")],
    ]


def run_module(*arguments: str) -> int:
    """Run a module of this repository; returns its exit code."""
    return subprocess.run([sys.executable, "-m", *arguments], cwd=ROOT, check=False).returncode


def totals(cases: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The totals of a suite."""
    seeds = [case["seed"] for case in cases]
    return {
        "cases": len(cases),
        "failed": sum(case["outcome"] != "pass" for case in cases),
        "instructions": sum(case["instructions"] for case in cases),
        "cycles": sum(case["cycles"] for case in cases),
        "seeds": f"{min(seeds)} to {max(seeds)}",
    }


def complete(folder: Path, run: Callable[..., int] = run_module, runs: Path = RUNS) -> list[str]:
    """Run all steps and record the long suites; returns what failed."""
    failed = []
    for stage in stages(datetime.now(UTC).date()):
        with ThreadPoolExecutor(len(stage)) as pool:
            codes = list(pool.map(lambda step: run(*step), stage))
        failed += [step[0] for step, code in zip(stage, codes, strict=True) if code]
    report = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    for suite in RECORDED:
        if cases := [case for case in report["cases"] if case["suite"] == suite]:
            row = evidence.measured(totals(cases), "intloom regress nightly", ROOT, ("hw/npu.py",))
            evidence.record(runs, suite, row)
    return failed


def main() -> None:
    """Parse the command line and complete the regression."""
    parser = argparse.ArgumentParser(prog="python -m tools.nightly", description=__doc__)
    parser.add_argument("folder", type=Path, help="output folder of the regression")
    if failed := complete(parser.parse_args().folder):
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
