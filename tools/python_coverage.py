"""Branch coverage of the Python packages by the tests: `python -m tools.python_coverage [PYTEST ARGUMENTS]`.

Processes that tests start are measured too. Counts add up in `out/python-coverage` until `--erase`, so that the tests
can run in parts; each call rewrites `docs/data/python-coverage.json`, and fails if a package has less than 95 %. Line
tracing makes tests about twice as slow; those of `tests/hw` reach nothing else of these packages, and are left out.
What is measured is in pyproject.toml.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from intloom.common import evidence

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "out" / "python-coverage"
SUMMARY = ROOT / "docs" / "data" / "python-coverage.json"
PACKAGES = ("compiler", "sim", "intloom")
_TESTS = ("tests/compiler", "tests/intloom", "tests/runtime", "tests/sim")
"""Tests that reach what others do not."""
REQUIRED_PERCENT = 95.0


def percent(counts: Mapping[str, int]) -> float:
    """Share of a package's statements and branches that were reached."""
    return 100 * counts["reached"] / counts["points"]


def _coverage(*arguments: str | Path) -> int:
    return subprocess.run([sys.executable, "-m", "coverage", *arguments], cwd=ROOT, check=False).returncode


def measure(tests: Iterable[str]) -> bool:
    """Run tests and add their counts; whether they pass."""
    # The C tracer is the only one that measures branches at this speed on Python 3.11.
    os.environ["COVERAGE_CORE"] = "ctrace"
    passed = _coverage("run", "-m", "pytest", *tests) == 0
    _coverage("combine", "--append", "--quiet", FOLDER)
    return passed


def counts_of(package: str) -> dict[str, int]:
    """Statements and branches of a package, and how many of them all tests so far have reached."""
    report = FOLDER / f"{package}.json"
    _coverage("json", "--quiet", f"--include={package}/*", "-o", report)
    totals = json.loads(report.read_text(encoding="utf-8"))["totals"]
    return {
        "points": totals["num_statements"] + totals["num_branches"],
        "reached": totals["covered_lines"] + totals["covered_branches"],
    }


def main() -> None:
    """Parse the command line, run the tests, and write the report."""
    parser = argparse.ArgumentParser(prog="python -m tools.python_coverage", description=__doc__)
    parser.add_argument("--erase", action="store_true", help="forget the counts of earlier calls")
    parser.add_argument("--renew", action="store_true", help="count only if the figures are older than the sources")
    options, tests = parser.parse_known_args()
    tests = ["--ignore=tests/hw", *tests]
    if options.renew and evidence.read(SUMMARY)["all"].is_current(ROOT):
        print("the coverage of the Python packages is up to date: tests run without counting")
        sys.exit(subprocess.run([sys.executable, "-m", "pytest", *tests], cwd=ROOT, check=False).returncode)
    if options.erase:
        shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True, exist_ok=True)
    passed = measure(tests)
    _coverage("html", "--quiet", "-d", FOLDER / "html")
    packages = {name: counts_of(name) for name in PACKAGES}
    evidence.record(SUMMARY, "all", evidence.measured(packages, "make python-coverage", ROOT, (*PACKAGES, *_TESTS)))
    for name, counts in packages.items():
        print(f"{name}: {percent(counts):.1f} % of {counts['points']:,} statements and branches")
    if not passed:
        sys.exit("some tests failed")
    if too_few := [name for name, counts in packages.items() if percent(counts) < REQUIRED_PERCENT]:
        sys.exit(f"less than {REQUIRED_PERCENT:.0f} %: {', '.join(too_few)}")


if __name__ == "__main__":
    main()
