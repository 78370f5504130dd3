"""The part of `intloom regress nightly` that needs a checkout: all tests, coverage, mutations.

`python -m tools.nightly FOLDER`, with the output folder of the regression.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from pathlib import Path

from tools.long_runs import ROOT, RUNS, LongRun, add_run, present_commit, run_of_regression

RECORDED = {"random": "random programs, without faults", "soak": "soak: random programs with random stalls and faults"}
"""Suites that are recorded, with their names there."""
AFTER = "nightly run after its suites: all tests, coverage, mutations"
"""Its cases are these steps."""
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
        [("tools.coverage",), ("tools.mutate", "--minutes", str(MUTATION_MINUTES), "--seed", f"{today:%Y%m%d}")],
    ]


def run_module(*arguments: str) -> int:
    """Run a module of this repository; returns its exit code."""
    return subprocess.run([sys.executable, "-m", *arguments], cwd=ROOT, check=False).returncode


def complete(folder: Path, run: Callable[..., int] = run_module, runs: Path = RUNS) -> list[str]:
    """Run all steps and record the long suites; returns what failed."""
    now, started = datetime.now(UTC).date(), time.monotonic()
    night, failed = stages(now), []
    for stage in night:
        with ThreadPoolExecutor(len(stage)) as pool:
            codes = list(pool.map(lambda step: run(*step), stage))
        failed += [step[0] for step, code in zip(stage, codes, strict=True) if code]
    spent = round(time.monotonic() - started)
    add_run(LongRun(AFTER, now.isoformat(), present_commit(), sum(map(len, night)), len(failed), 0, 0, spent), runs)
    report = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    for suite, name in RECORDED.items():
        cases = [case for case in report["cases"] if case["suite"] == suite]
        if cases:
            add_run(run_of_regression({"cases": cases}, name, now.isoformat(), present_commit()), runs)
    return failed


def main() -> None:
    """Parse the command line and complete the regression."""
    parser = argparse.ArgumentParser(prog="python -m tools.nightly", description=__doc__)
    parser.add_argument("folder", type=Path, help="output folder of the regression")
    if failed := complete(parser.parse_args().folder):
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
