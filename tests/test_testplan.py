"""The test plan is complete and names real tests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tools.components import components, name_of
from tools.testplan.page import page
from tools.testplan.plan import Entry, Item, problems, read_entry, read_plan
from tools.testplan.results import Result, outcomes_of, read_results, record

NAMES = [name_of(c) for c in components()]
HERE = "tests/test_testplan.py"
ENTRY = Entry("a:A", HERE, (Item("It works.", (f"{HERE}::test_the_plan_is_complete",)),), ())


def test_the_plan_is_complete() -> None:
    assert not [*problems(read_plan(), NAMES)]


def test_the_page_has_every_item() -> None:
    text = page(read_plan())
    assert all(f"| {item.text} |" in text for entry in read_plan() for item in entry.items)


def test_gaps_are_found() -> None:
    assert not [*problems([ENTRY], ["a:A"])]
    missing = Item("It fails.", (f"{HERE}::test_of_nothing",))
    for entries, names, found in (
        ([ENTRY], ["a:A", "b:B"], "b:B must have one file"),
        ([ENTRY, ENTRY], ["a:A"], "not 2"),
        ([ENTRY], [], "not in hw"),
        ([replace(ENTRY, features=())], ["a:A"], "names no feature"),
        ([replace(ENTRY, corner_cases=(Item("x", ()),))], ["a:A"], "names no test"),
        ([replace(ENTRY, corner_cases=(missing,))], ["a:A"], "is no test"),
    ):
        (problem,) = problems(entries, names)
        assert found in problem


def test_tests_without_a_file_are_in_the_bench(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("component: a:A\nbench: b.py\nfeatures:\n  - text: t\n    tests: [test_c, d.py::test_e]\n")
    assert read_entry(path).features == (Item("t", ("b.py::test_c", "d.py::test_e")),)


REPORT = """<testsuites><testsuite>
<testcase classname="tests.a" name="test_b[1]"/>
<testcase classname="tests.a" name="test_b[2]"><failure message="no"/></testcase>
<testcase classname="tests.a" name="test_c[1]"><skipped/></testcase><testcase classname="tests.a" name="test_c[2]"/>
<testcase classname="tests.a" name="test_d"><skipped/></testcase><testcase classname="tests.a" name="test_e"/>
</testsuite></testsuites>"""


def test_results_of_planned_tests_are_recorded(tmp_path: Path) -> None:
    report, path = tmp_path / "report.xml", tmp_path / "results.json"
    report.write_text(REPORT)
    outcomes = outcomes_of(report)
    assert outcomes == {
        "tests/a.py::test_b": "failed",
        "tests/a.py::test_c": "passed",
        "tests/a.py::test_d": "skipped",
        "tests/a.py::test_e": "passed",
    }
    tests = ["tests/a.py::test_b", "tests/a.py::test_c", "tests/a.py::test_z"]
    record({"tests/a.py::test_z": "passed", "tests/a.py::test_b": "passed"}, tests, "2026-01-01", "abc", path)
    record(outcomes, tests, "2026-01-02", "def", path)
    assert read_results(path) == {
        "tests/a.py::test_b": Result("failed", "2026-01-02", "def"),
        "tests/a.py::test_c": Result("passed", "2026-01-02", "def"),
        "tests/a.py::test_z": Result("passed", "2026-01-01", "abc"),
    }


def test_the_page_has_stages_and_last_results() -> None:
    tests = tuple(f"{HERE}::test_{name}" for name in "abc")
    entries = [replace(ENTRY, features=tuple(Item(test[-1], tests[: n + 1]) for n, test in enumerate(tests)))]
    results = {test: Result("passed", f"2026-01-0{n}", "abc") for n, test in enumerate(tests[:2], start=2)}
    text = page(entries, {"a:A": "V2"}, results)
    assert "| a:A | V2 | 3 | 0 | 3 | 2 of 3 passed, 2026-01-02 |" in text
    assert text.count("| V2, passed, 2026-01-02 |") == 2
    assert "| V2, 2 of 3 passed, 2026-01-02 |" in text
    failed = page(entries, {}, results | {tests[1]: Result("failed", "2026-01-05", "abc")})
    assert "| none | 3 | 0 | 3 | failed, 2026-01-02 |" in failed
    assert "| V2 | 3 | 0 | 3 | not recorded |" in page(entries, {"a:A": "V2"}, {})
