"""The page of the test plan: a table for each component, and a summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tools.testplan.plan import Entry, Item

_HEAD = """\
# Test plan

Each component of the RTL has a file in `docs/testplan`: its features, its corner cases, and the tests that cover them.
`make test` fails if a component has no file, an item names no test, or a named test does not exist.
"""


def _rows(kind: str, items: Sequence[Item]) -> Iterator[str]:
    for item in items:
        tests = "<br>".join(f"`{test.split('::')[1]}` in `{test.split('::')[0]}`" for test in item.tests)
        yield f"| {kind} | {item.text} | {tests} |"


def _section(entry: Entry) -> str:
    lines = [f"## {entry.component}", "", "| | covers | tests |", "|---|---|---|"]
    return "\n".join([*lines, *_rows("feature", entry.features), *_rows("corner case", entry.corner_cases), ""])


def page(entries: Sequence[Entry]) -> str:
    """The page as Markdown."""
    tests = {test for entry in entries for item in entry.items for test in item.tests}
    items = [item for entry in entries for item in entry.items]
    corners = sum(len(entry.corner_cases) for entry in entries)
    summary = (
        f"{len(entries)} components, {len(items) - corners} features, {corners} corner cases, {len(tests)} tests.\n"
    )
    return "\n".join([_HEAD, summary, *map(_section, entries)])
