"""Branch coverage by package, from the files of coverage.py's report."""

import sys
from pathlib import Path

import pytest

from intloom.common import evidence
from tools import python_coverage
from tools.python_coverage import PACKAGES, PackageCoverage, packages_of


def file(lines: int, covered: int, branches: int, taken: int) -> dict[str, dict[str, int]]:
    summary = {"num_statements": lines, "covered_lines": covered, "num_branches": branches, "covered_branches": taken}
    return {"summary": summary}


def test_files_count_for_their_package() -> None:
    files = {
        "compiler/a.py": file(10, 9, 4, 3),
        "compiler/fold/b.py": file(6, 6, 0, 0),
        "sim/c.py": file(8, 4, 2, 1),
        "tests/d.py": file(100, 0, 0, 0),
    }
    found = packages_of(files)
    assert found == {"compiler": PackageCoverage(20, 18), "sim": PackageCoverage(10, 5)}
    assert (found["compiler"].percent, PackageCoverage().percent) == (90.0, 0.0)


@pytest.mark.parametrize(("reached", "below"), [(95, ""), (94, "sim"), (None, "sim")])
def test_the_command_fails_if_a_package_has_less_than_the_required_percentage(
    reached: int | None, below: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = {name: PackageCoverage(100, 96) for name in PACKAGES if name != "sim"}
    packages |= {} if reached is None else {"sim": PackageCoverage(100, reached)}
    monkeypatch.setattr(python_coverage, "report", lambda: packages)
    monkeypatch.setattr(python_coverage, "FOLDER", tmp_path / "counts")
    path = tmp_path / "summary.json"
    monkeypatch.setattr(python_coverage, "SUMMARY", path)
    monkeypatch.setattr(sys, "argv", ["python_coverage", "--report"])
    if below:
        with pytest.raises(SystemExit, match=f"less than 95 %: {below}$"):
            python_coverage.main()
    else:
        python_coverage.main()
    assert evidence.read(path)["all"].values.keys() == packages.keys()
