"""Branch coverage of the Python packages by the tests: `python -m tools.python_coverage [PYTEST ARGUMENTS]`.

Processes that tests start are measured too. Counts add up in `out/python-coverage` until `--erase`, so that the tests
can run in parts; each call rewrites `docs/data/python-coverage.json`, and fails if a package has less than 95 %. Line
tracing makes tests about twice as slow.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from intloom.common import evidence
from intloom.common.atomic_write import write_text

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "out" / "python-coverage"
SUMMARY = ROOT / "docs" / "data" / "python-coverage.json"
PACKAGES = ("compiler", "sim", "intloom")
REQUIRED_PERCENT = 95.0
_SETTINGS = f"""\
[run]
branch = true
parallel = true
patch =
    subprocess
    _exit
source = {",".join(PACKAGES)}
data_file = {FOLDER / "counts"}
omit =
    */cocotb_*
[report]
exclude_also =
    if TYPE_CHECKING:
    @abstractmethod
    raise NotImplementedError
    if __name__ == .__main__.:
    class .*\\(Protocol\\):
"""


@dataclass(frozen=True)
class PackageCoverage:
    """Statements and branches of one package."""

    points: int = 0
    reached: int = 0

    @property
    def percent(self) -> float:
        """Share of the statements and branches that were reached."""
        return 100 * self.reached / max(1, self.points)


def below(packages: Mapping[str, PackageCoverage]) -> list[str]:
    """Packages with less than the required percentage, or without a measurement."""
    return [n for n in PACKAGES if packages.get(n, PackageCoverage()).percent < REQUIRED_PERCENT]


def packages_of(files: Mapping[str, Mapping[str, Any]]) -> dict[str, PackageCoverage]:
    """Coverage of the packages from the files of coverage.py's report."""
    packages: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for name, file in files.items():
        totals, counts = file["summary"], packages[Path(name).parts[0]]
        counts[0] += totals["num_statements"] + totals["num_branches"]
        counts[1] += totals["covered_lines"] + totals["covered_branches"]
    return {name: PackageCoverage(*packages[name]) for name in PACKAGES if name in packages}


def _coverage(*arguments: str | Path) -> int:
    settings = FOLDER / "settings"
    write_text(settings, _SETTINGS)
    command = [sys.executable, "-m", "coverage", arguments[0], f"--rcfile={settings}", *arguments[1:]]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def measure(tests: Iterable[str]) -> bool:
    """Run tests and add their counts; whether they pass."""
    # The C tracer is the only one that measures branches at this speed on Python 3.11.
    os.environ["COVERAGE_CORE"] = "ctrace"
    passed = _coverage("run", "-m", "pytest", *tests) == 0
    _coverage("combine", "--append", "--quiet", FOLDER)
    return passed


def report() -> dict[str, PackageCoverage]:
    """Write the report of all counts, as JSON and as HTML."""
    _coverage("json", "--quiet", "-o", FOLDER / "report.json")
    _coverage("html", "--quiet", "-d", FOLDER / "html")
    return packages_of(json.loads((FOLDER / "report.json").read_text(encoding="utf-8"))["files"])


def main() -> None:
    """Parse the command line, run the tests, and write the report."""
    parser = argparse.ArgumentParser(prog="python -m tools.python_coverage", description=__doc__)
    parser.add_argument("--erase", action="store_true", help="forget the counts of earlier calls")
    parser.add_argument("--report", action="store_true", help="run no tests")
    options, tests = parser.parse_known_args()
    if options.erase:
        shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True, exist_ok=True)
    passed = options.report or measure(tests)
    packages = report()
    values = {name: asdict(package) for name, package in packages.items()}
    evidence.record(SUMMARY, "all", evidence.measured(values, "make python-coverage", ROOT, (*PACKAGES, "tests")))
    for name, package in packages.items():
        print(f"{name}: {package.percent:.1f} % of {package.points:,} statements and branches")
    if not passed:
        sys.exit("some tests failed")
    if too_few := below(packages):
        sys.exit(f"less than {REQUIRED_PERCENT:.0f} %: {', '.join(too_few)}")


if __name__ == "__main__":
    main()
