"""The page of all recorded measurements, each with its date.

Every measurement says by itself if it is of an older design: its hash differs from that of the present sources.
`python -m tools.evidence_page` lists those, with the commands that renew them, and fails if there are any.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from intloom.common import evidence
from intloom.hw.area.model import MEASURED
from tools.components import components, name_of
from tools.coverage.summary import KINDS, SUMMARY, Share, read_shares, total
from tools.coverage.waivers import read_waivers
from tools.figures import FIGURES
from tools.forecast_error import RESULTS
from tools.long_runs import RUNS
from tools.mutate.score import SCORES, Score, is_current, read_scores
from tools.mutate.targets import NOT_MUTATED
from tools.python_coverage import SUMMARY as PYTHON
from tools.python_coverage import percent

ROOT = Path(__file__).parents[1]
_FILES = {
    "coverage of the RTL": SUMMARY,
    "coverage of the Python packages": PYTHON,
    "random programs of a night": RUNS,
    "FPGA": ROOT / "hw/fpga/measured.json",
    "FPGA, counts by Yosys": ROOT / "docs/data/fpga-counts.json",
    "bitstreams of boards": ROOT / "docs/data/bitstreams.json",
    "standard cells": ROOT / "docs/data/asic.json",
    "area": MEASURED,
    "forecast": RESULTS,
    "networks": FIGURES,
}
_PAGES = {
    "fpga.md": ("FPGA", "FPGA, counts by Yosys", "bitstreams of boards"),
    "asic.md": ("standard cells",),
    "choosing.md": ("area", "forecast"),
    "comparison.md": ("networks",),
    "verification.md": (*_FILES, "mutations"),
}
"""The pages of the manual that show figures, and the measurements that these come from."""
_HEAD = """\
---
hide: [toc]
---

# Evidence

What was measured, when, and by which command. A measurement is *of an older design* if the code that it depends on has
changed since.

"""
_MUTATIONS = """
## Components of the RTL

Coverage is that of whole programs on the accelerator, merged over several hardware shapes, without bits that are
constant and without the points that `tools/coverage/waivers.yaml` lists with a reason. A mutation is a small fault in
the RTL: a bit of an operand is inverted or stuck. It counts as found if a test of the component's bench fails. It is
left out if Yosys proves that it changes nothing, or if `tools/mutate/equivalent.yaml` lists it with a reason.

"""


def rows(name: str) -> dict[str, evidence.Evidence]:
    """The kept measurements of a name in `_PAGES`."""
    return evidence.read(SCORES if name == "mutations" else _FILES[name])


def older(name: str) -> dict[str, evidence.Evidence]:
    """Those whose sources have changed since."""
    if name == "mutations":
        return {key: row for key, row in rows(name).items() if not is_current(key, row)}
    return {key: row for key, row in rows(name).items() if not row.is_current(ROOT)}


def notice(page: str) -> str:
    """What a page of the manual says first if figures on it are older than their sources; nothing if none is."""
    lines = (
        f"    {name}: {count} of {len(rows(name))}, renewed by `{command}`\n"
        for name in _PAGES.get(page, ())
        for command, count in Counter(_renewal(name, row) for row in older(name).values()).items()
    )
    text = "\n".join(lines)
    return f'!!! warning "Figures that are older than their sources"\n\n{text}\n' if text else ""


def _renewal(name: str, row: evidence.Evidence) -> str:
    """One command for all components, since each of them has its own."""
    return "make mutate" if name == "mutations" else row.command


def _table(*heads: str) -> str:
    return f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|\n"


def _measurements() -> Iterator[str]:
    yield _table("measurement", "of", "command", "measured")
    for name, path in _FILES.items():
        for key, row in evidence.read(path).items():
            yield f"| {name} | {key} | `{row.command}` | {row.when(ROOT)} |\n"


def _score(name: str, scores: Mapping[str, Score]) -> str:
    if name in NOT_MUTATED:
        return f"none: {NOT_MUTATED[name]}"
    if name not in scores:
        return "not measured"
    score = scores[name]
    older = "" if score.current else ", measured on an older design"
    return f"{score.percent:.1f} % of {score.counted}{older}"


def _components(covered: Mapping[str, Mapping[str, Share]], scores: Mapping[str, Score]) -> Iterator[str]:
    yield _table("component", *(f"{kind} %" for kind in KINDS), "waived points", "mutations found")
    for name in sorted({*covered, *scores, *NOT_MUTATED, *map(name_of, components())}):
        kinds = covered.get(name, {})
        shares = (f"{kinds[kind].percent:.1f}" if kind in kinds else "-" for kind in KINDS)
        waived = sum(share.waived for share in kinds.values())
        yield f"| {' | '.join((name, *shares, f'{waived:,}', _score(name, scores)))} |\n"


def _holes(scores: Mapping[str, Score]) -> Iterator[str]:
    yield "\n## Faults that no test of the bench finds\n\n"
    yield _table("component", "line", "fault")
    for name, score in scores.items():
        for line, fault in score.holes:
            yield f"| {name} | {_code(line)} | {fault} |\n"


def _totals(covered: Mapping[str, Mapping[str, Share]], values: Mapping[str, Any]) -> Iterator[str]:
    yield "\n## Coverage\n\n" + _table("", "covered", "with waived points missed", "missed", "waived", "constant")
    for kind in KINDS:
        share = total(covered, kind)
        covers = f"{share.percent:.2f} % of {share.reached + share.missed:,}"
        counts = (share.missed, share.waived, share.constant)
        yield f"| {kind} | {covers} | {share.strict_percent:.2f} % | {' | '.join(f'{n:,}' for n in counts)} |\n"
    missed = len(values["missed_cover_points"])
    yield f"| cover points | {values['cover_points'] - missed:,} of {values['cover_points']:,} | | {missed} | 0 | |\n"
    for row in evidence.read(PYTHON).values():
        for name, counts in row.values.items():
            missed = counts["points"] - counts["reached"]
            yield f"| branches of `{name}` | {percent(counts):.1f} % of {counts['points']:,} | | {missed:,} | 0 | |\n"


def _code(text: str) -> str:
    """A regular expression in a table: Markdown would read its bars, stars and brackets."""
    return f"<code>{''.join(c if c.isalnum() or c in ' .-' else f'&#{ord(c)};' for c in text)}</code>"


def _waivers() -> Iterator[str]:
    yield "\n## Waivers\n\n" + _table("modules", "kind", "points", "reason")
    for w in read_waivers():
        lines = f" in lines with {_code(w.text)}" if w.text else ""
        yield f"| {_code(w.module)} | {w.kind} | {_code(w.name)}{lines} | {w.reason} |\n"


def page() -> str:
    """The page as Markdown."""
    row = evidence.read(SUMMARY)["all"]
    covered, scores = read_shares(row), read_scores()
    parts = (
        _measurements(),
        _MUTATIONS,
        _components(covered, scores),
        _holes(scores),
        _totals(covered, row.values),
        _waivers(),
    )
    return _HEAD + "".join("".join(part) for part in parts)


def main() -> int:
    """Print what is older than its sources, one measurement a line."""
    stale = [(name, key, row) for name in _PAGES["verification.md"] for key, row in older(name).items()]
    for name, key, row in stale:
        print(f"{name}, {key}: measured {row.date} after commit {row.commit}; renew it by: {row.command}")
    return int(bool(stale))


if __name__ == "__main__":
    sys.exit(main())
