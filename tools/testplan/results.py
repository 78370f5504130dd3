"""The last recorded result of each test of the plan: `docs/data/test-results.json`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

from intloom.common.atomic_write import write_text
from tools.testplan.plan import ROOT

RESULTS = ROOT / "docs" / "data" / "test-results.json"
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
_RANKS = (FAILED, PASSED, SKIPPED)
"""A test with parameters has the first of these that one of its cases has."""


@dataclass(frozen=True)
class Result:
    """The result of a test."""

    outcome: str
    date: str
    commit: str


def outcomes_of(report: Path) -> dict[str, str]:
    """Outcomes in a JUnit report of pytest, by `file::function`."""
    found: dict[str, str] = {}
    for case in ET.parse(report).getroot().iter("testcase"):
        test = f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name', '').partition('[')[0]}"
        kinds = {child.tag for child in case}
        outcome = FAILED if kinds & {"failure", "error"} else SKIPPED if "skipped" in kinds else PASSED
        found[test] = min(found.get(test, outcome), outcome, key=_RANKS.index)
    return found


def read_results(path: Path = RESULTS) -> dict[str, Result]:
    """All recorded results, by test."""
    if not path.exists():
        return {}
    return {test: Result(**row) for test, row in json.loads(path.read_text(encoding="utf-8")).items()}


def record(outcomes: Mapping[str, str], tests: Iterable[str], date: str, commit: str, path: Path = RESULTS) -> None:
    """Replace the results of those of `tests` that ran; results of others that are still in the plan stay."""
    known, planned = read_results(path), set(tests)
    known |= {test: Result(outcome, date, commit) for test, outcome in outcomes.items()}
    rows = {test: asdict(result) for test, result in sorted(known.items()) if test in planned}
    write_text(path, json.dumps(rows, indent=1) + "\n")
