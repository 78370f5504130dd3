"""Branch coverage by package, from the files of coverage.py's report."""

from __future__ import annotations

from tools.python_coverage import PackageCoverage, packages_of


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
