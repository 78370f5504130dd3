"""The page of the test plan: a summary, and a table for each component."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tools.testplan.plan import Entry, Item
from tools.testplan.results import FAILED, PASSED, Result

_HEAD = """\
# Test plan

Each component of the RTL has a file in `docs/testplan`: its features, its corner cases, and the tests that cover them.
`make test` fails if a component has no file, an item names no test, or a named test does not exist. Stages are those of
the [sign-off](sign-off.md). The last result is the last one that was recorded, with its date; every night records all.
"""


def last_result(tests: Sequence[str], results: Mapping[str, Result]) -> str:
    """What the tests gave together: failed if one failed, and only passed if all ran and passed."""
    found = [results[test] for test in tests if test in results]
    if not found:
        return "not recorded"
    oldest = min(result.date for result in found)
    if any(result.outcome == FAILED for result in found):
        return f"failed, {oldest}"
    passed = sum(result.outcome == PASSED for result in found)
    return f"passed, {oldest}" if passed == len(tests) else f"{passed} of {len(tests)} passed, {oldest}"


def _overview(entries: Sequence[Entry], stages: Mapping[str, str], results: Mapping[str, Result]) -> Iterator[str]:
    yield "| component | stage | features | corner cases | tests | last result |"
    yield "|---|---|---|---|---|---|"
    for entry in entries:
        tests = sorted({test for item in entry.items for test in item.tests})
        counts = f"{len(entry.features)} | {len(entry.corner_cases)} | {len(tests)}"
        stage = stages.get(entry.component, "none")
        yield f"| {entry.component} | {stage} | {counts} | {last_result(tests, results)} |"


def _rows(kind: str, items: Sequence[Item], stage: str, results: Mapping[str, Result]) -> Iterator[str]:
    for item in items:
        tests = "<br>".join(f"`{test.split('::')[1]}` in `{test.split('::')[0]}`" for test in item.tests)
        yield f"| {kind} | {item.text} | {tests} | {stage}, {last_result(item.tests, results)} |"


def _section(entry: Entry, stages: Mapping[str, str], results: Mapping[str, Result]) -> str:
    lines = [f"## {entry.component}", "", "| | covers | tests | stage, last result |", "|---|---|---|---|"]
    stage = stages.get(entry.component, "none")
    features = _rows("feature", entry.features, stage, results)
    return "\n".join([*lines, *features, *_rows("corner case", entry.corner_cases, stage, results), ""])


def page(
    entries: Sequence[Entry], stages: Mapping[str, str] | None = None, results: Mapping[str, Result] | None = None
) -> str:
    """The page as Markdown; `stages` by component, `results` by test."""
    stages, results = stages or {}, results or {}
    tests = {test for entry in entries for item in entry.items for test in item.tests}
    items = [item for entry in entries for item in entry.items]
    corners = sum(len(entry.corner_cases) for entry in entries)
    summary = (
        f"{len(entries)} components, {len(items) - corners} features, {corners} corner cases, {len(tests)} tests.\n"
    )
    sections = (_section(entry, stages, results) for entry in entries)
    return "\n".join([_HEAD, summary, *_overview(entries, stages, results), "", *sections])
