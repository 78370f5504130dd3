"""The sign-off page: stages follow from the data, and runs are recorded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tools.coverage.summary import Share, Summary
from tools.coverage.waivers import Waiver
from tools.mutate.planted import Result, read_result, write_result
from tools.mutate.score import Score
from tools.python_coverage import PackageCoverage, PythonCoverage
from tools.signoff.page import page, stage
from tools.signoff.present import present_page, present_test_plan
from tools.signoff.runs import LongRun, add_run, read_runs, run_of_regression
from tools.testplan.plan import Entry, Item, read_plan

FEATURE = Item("It works.", ("tests/a.py::test_a",))
PROOF = Item("For all inputs.", ("tests/hw/formal/test_a.py::test_a",))
CLOSED = {"line": Share(10), "branch": Share(10), "toggle": Share(98, 2)}
RUN = LongRun("random programs", "2026-01-02", "abc", 10, 0, 200, 3000, 5, "0 to 9")


def test_the_page_has_every_component() -> None:
    for text in (present_page(), present_test_plan()):
        assert all(f"| {entry.component} | V" in text for entry in read_plan())


@pytest.mark.parametrize(
    ("corner_cases", "found", "current", "expected"),
    [
        ((), 100, True, "V1"),
        ((FEATURE,), 89, True, "V1"),
        ((FEATURE,), 100, False, "V1"),
        ((FEATURE,), 92, True, "V2"),
        ((PROOF,), 92, True, "V2"),
        ((FEATURE,), 95, True, "V3"),
    ],
)
def test_a_stage_needs_corner_cases_and_mutations(
    corner_cases: tuple[Item, ...], found: int, current: bool, expected: str
) -> None:
    entry = Entry("a:A", "a.py", (FEATURE,), corner_cases)
    assert stage(entry, Score("k", 110, found, 10), current=current, covered=CLOSED) == expected


@pytest.mark.parametrize(
    ("covered", "expected"),
    [
        (None, "V2"),
        ({}, "V2"),
        (CLOSED, "V3"),
        ({"line": Share(10), "toggle": Share(98, 2)}, "V3"),
        ({"line": Share(10), "toggle": Share(97, 3)}, "V2"),
        ({"line": Share(10), "branch": Share(1000, 1)}, "V2"),
    ],
)
def test_the_last_stage_needs_coverage(covered: dict[str, Share] | None, expected: str) -> None:
    entry = Entry("a:A", "a.py", (FEATURE,), (FEATURE,))
    assert stage(entry, Score("k", 100, 100), current=True, covered=covered) == expected


def test_the_page_has_the_coverage_of_components_and_of_all() -> None:
    plan = [Entry(f"a:{name}", "a.py", (FEATURE,), ()) for name in "AB"]
    kinds = {"line": Share(9, 1), "toggle": Share(99, 1, 50)}
    text = page(plan, {}, {}, {}, [], Summary("2026-01-02", "abc", 7, 8, {"a:A": kinds}))
    for line in (
        "| 90.0, -, 99.0 | 50 toggle | not measured |",
        "| not in it | 0 | not measured |",
        "| line | 90.00 % of 10 | 1 | 0 |",
        "| toggle | 99.00 % of 100 | 1 | 50 |",
        "| cover points | 7 of 8 | 1 | 0 |",
    ):
        assert line in text


def test_the_page_lists_the_waivers() -> None:
    waivers = [Waiver("npu.(x|y)", "a.*", "why", "toggle"), Waiver("npu", "if", "because", "branch", "act1")]
    text = page([], {}, {}, {}, [], None, waivers)
    assert "| <code>npu.&#40;x&#124;y&#41;</code> | toggle | <code>a.&#42;</code> | why |" in text
    assert "| <code>npu</code> | branch | <code>if</code> in lines with <code>act1</code> | because |" in text


def test_the_page_tells_old_scores_and_reasons() -> None:
    plan = [Entry(f"a:{name}", "a.py", (FEATURE,), ()) for name in "ABCD"]
    scores = {"a:A": Score("k", 10, 9, 0), "a:B": Score("old", 10, 9, 0)}
    runs = [RUN, replace(RUN, name="changed programs", cycles=0)]
    text = page(plan, scores, {"a:A": "k", "a:B": "k"}, {"a:C": "no bench"}, runs)
    for line in ("90.0 % of 10 |", "90.0 % of 10, of earlier sources |", "none: no bench |", "not measured |"):
        assert line in text
    assert "| random programs | 2026-01-02 | abc | 0 to 9 | 10 | 0 | 200 | 3,000 |" in text
    assert "| changed programs | 2026-01-02 | abc | 0 to 9 | 10 | 0 | 200 | not counted |" in text


def test_the_page_has_planted_bugs_and_python_coverage(tmp_path: Path) -> None:
    planted = Result("2026-01-02", "abc", 9, ("a wrong carry",))
    write_result(planted, tmp_path / "planted.json")
    python = PythonCoverage("2026-01-03", "def", {"sim": PackageCoverage(1000, 961)})
    text = page([], {}, {}, {}, [], None, (), read_result(tmp_path / "planted.json"), python)
    for line in (
        "| all | 8 of 9; not found: a wrong carry | 2026-01-02, after commit abc |",
        "| statements and branches of `sim` | 95 % | 96.1 % of 1,000 | 2026-01-03, after commit def |",
        "| statements and branches of `compiler` | 95 % | not measured | |",
    ):
        assert line in text
    assert "| all | not measured | |" in page([], {}, {}, {}, [])
    assert read_result(tmp_path / "none.json") is None


def test_a_regression_is_recorded_once_per_commit(tmp_path: Path) -> None:
    path = tmp_path / "runs.json"
    case = {"seed": 3, "outcome": "pass", "instructions": 7, "cycles": 100, "seconds": 1.5}
    report = {"cases": [case, {**case, "seed": 5, "outcome": "fail"}]}
    run = run_of_regression(report, "random programs", "2026-01-02", "abc")
    assert run == LongRun("random programs", "2026-01-02", "abc", 2, 1, 14, 200, 3, "3 to 5")
    for added in (RUN, run):
        add_run(added, path)
    assert read_runs(path) == [run]
