"""The test plan is complete and names real tests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tools.components import components, name_of
from tools.testplan.page import page
from tools.testplan.plan import Entry, Item, problems, read_entry, read_plan

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
