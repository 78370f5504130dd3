"""The page: a row for each component, the long runs, and what a stage means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tools.coverage.page import KINDS
from tools.coverage.summary import Share, Summary
from tools.coverage.waivers import Waiver
from tools.mutate.planted import Result
from tools.mutate.score import Score
from tools.python_coverage import PACKAGES, REQUIRED_PERCENT, PythonCoverage
from tools.signoff.runs import LongRun
from tools.testplan.plan import Entry

V2_PERCENT, V3_PERCENT = 90.0, 95.0
TOGGLE_PERCENT = 98.0
_PROOFS = "tests/hw/formal/"
_HEAD = f"""\
# Sign-off

What is verified of each component of the RTL: from the [test plan](test-plan.md), the scores of `make mutate`, and the
records of measurements and long runs in `docs/data`.

| stage | requires |
|---|---|
| V1 | features and their tests in the test plan |
| V2 | V1, corner cases in the test plan, and {V2_PERCENT:.0f} % of the mutations found, with the present sources |
| V3 | V2; {V3_PERCENT:.0f} % of the mutations; measured coverage: lines, branches, {TOGGLE_PERCENT:.0f} % of toggles |

A mutation is a small fault in the RTL: a bit of an operand is inverted or stuck. It counts as found if a test of the
component's bench fails. It is left out if Yosys proves that it changes nothing, or if `tools/mutate/equivalent.yaml`
lists it with a reason. Coverage is that of whole programs on the accelerator, from
`make coverage`, without the points that `tools/coverage/waivers.yaml` lists with a reason. Components outside the
accelerator are not in these programs and remain in V2.
"""


def stage(entry: Entry, score: Score | None, *, current: bool, covered: Mapping[str, Share] | None = None) -> str:
    """The stage that a component has reached; `covered` by kind, None if its coverage is not measured."""
    percent = score.percent if score is not None and current else 0.0
    if not entry.corner_cases or percent < V2_PERCENT:
        return "V1"
    closed = bool(covered) and all(_is_closed(kind, share) for kind, share in (covered or {}).items())
    return "V3" if closed and percent >= V3_PERCENT else "V2"


def stages(
    plan: Sequence[Entry], scores: Mapping[str, Score], keys: Mapping[str, str], coverage: Summary | None
) -> dict[str, str]:
    """The stage of every component; `keys` are those of the present sources."""
    measured = coverage.components if coverage is not None else {}
    found = {}
    for entry in plan:
        score = scores.get(entry.component)
        current = score is not None and score.key == keys.get(entry.component)
        found[entry.component] = stage(entry, score, current=current, covered=measured.get(entry.component))
    return found


def _is_closed(kind: str, share: Share) -> bool:
    return share.percent >= TOGGLE_PERCENT if kind == "toggle" else not share.missed


def _proofs(entry: Entry) -> int:
    return len({test for item in entry.items for test in item.tests if test.startswith(_PROOFS)})


def _mutations(score: Score | None, reason: str | None, *, current: bool) -> str:
    if reason is not None:
        return f"none: {reason}"
    if score is None:
        return "not measured"
    count = score.faults - score.harmless - score.listed
    return f"{score.percent:.1f} % of {count}" + ("" if current else ", of earlier sources")


def _coverage(covered: Mapping[str, Share] | None) -> str:
    if covered is None:
        return "not in it"
    return ", ".join(f"{covered[kind].percent:.1f}" if kind in covered else "-" for kind in KINDS)


def _waived(covered: Mapping[str, Share] | None) -> str:
    counts = {kind: share.waived for kind, share in (covered or {}).items() if share.waived}
    return ", ".join(f"{counts[kind]:,} {kind}" for kind in KINDS if kind in counts) or "0"


def _rows(
    plan: Sequence[Entry],
    scores: Mapping[str, Score],
    keys: Mapping[str, str],
    reasons: Mapping[str, str],
    coverage: Summary | None,
) -> Iterator[str]:
    heads = (
        "component",
        "stage",
        "features",
        "corner cases",
        "tests",
        "proofs",
        f"{', '.join(KINDS)} %",
        "waived points",
    )
    yield f"| {' | '.join((*heads, 'mutations found'))} |"
    yield "|---" * (len(heads) + 1) + "|"
    reached = stages(plan, scores, keys, coverage)
    for entry in plan:
        name = entry.component
        score, current = scores.get(name), name in scores and scores[name].key == keys.get(name)
        covered = coverage.components.get(name) if coverage is not None else None
        tests = len({test for item in entry.items for test in item.tests})
        mutations = _mutations(score, reasons.get(name), current=current)
        counts = f"{len(entry.features)} | {len(entry.corner_cases)} | {tests} | {_proofs(entry)}"
        yield f"| {name} | {reached[name]} | {counts} | {_coverage(covered)} | {_waived(covered)} | {mutations} |"


def _covered(coverage: Summary | None) -> Iterator[str]:
    if coverage is None:
        return
    yield f"Measured on {coverage.date}, after commit {coverage.commit}."
    yield ""
    yield "| | covered | missed | waived |"
    yield "|---|---|---|---|"
    for kind in KINDS:
        share = coverage.total(kind)
        covered = f"{share.percent:.2f} % of {share.reached + share.missed:,}"
        yield f"| {kind} | {covered} | {share.missed:,} | {share.waived:,} |"
    missed = coverage.cover_points - coverage.reached_cover_points
    yield f"| cover points | {coverage.reached_cover_points:,} of {coverage.cover_points:,} | {missed} | 0 |"


def _whole(planted: Result | None, python: PythonCoverage | None) -> Iterator[str]:
    yield "| | required | reached | measured |"
    yield "|---|---|---|---|"
    row = "not measured | |"
    if planted is not None:
        missed = "".join(f"; not found: {name}" for name in planted.not_found)
        found = planted.bugs - len(planted.not_found)
        row = f"{found} of {planted.bugs}{missed} | {planted.date}, after commit {planted.commit} |"
    yield f"| planted bugs that their tests find | all | {row}"
    for name in PACKAGES:
        row = "not measured | |"
        if python is not None and name in python.packages:
            package = python.packages[name]
            reached = f"{package.percent:.1f} % of {package.points:,}"
            row = f"{reached} | {python.date}, after commit {python.commit} |"
        yield f"| statements and branches of `{name}` | {REQUIRED_PERCENT:.0f} % | {row}"


def _code(text: str) -> str:
    """A regular expression in a table: Markdown would read its bars, stars and brackets."""
    return f"<code>{''.join(c if c.isalnum() or c in ' .-' else f'&#{ord(c)};' for c in text)}</code>"


def _waivers(waivers: Sequence[Waiver]) -> Iterator[str]:
    yield "| modules | kind | points | reason |"
    yield "|---|---|---|---|"
    for waiver in waivers:
        lines = f" in lines with {_code(waiver.text)}" if waiver.text else ""
        kind = waiver.kind or "all"
        yield f"| {_code(waiver.module)} | {kind} | {_code(waiver.name)}{lines} | {waiver.reason} |"


def _long_runs(runs: Sequence[LongRun]) -> Iterator[str]:
    yield "| run | date | commit | seeds | cases | failed | instructions | cycles |"
    yield "|---|---|---|---|---|---|---|---|"
    for r in runs:
        counts = (f"{count:,}" if count else "not counted" for count in (r.instructions, r.cycles))
        yield f"| {' | '.join((r.name, r.date, r.commit, r.seeds, f'{r.cases:,}', str(r.failed), *counts))} |"


def page(
    plan: Sequence[Entry],
    scores: Mapping[str, Score],
    keys: Mapping[str, str],
    reasons: Mapping[str, str],
    runs: Sequence[LongRun],
    coverage: Summary | None = None,
    waivers: Sequence[Waiver] = (),
    planted: Result | None = None,
    python: PythonCoverage | None = None,
) -> str:
    """The page as Markdown; `keys` are those of the present sources, `reasons` of components without mutations."""
    rows = [*_rows(plan, scores, keys, reasons, coverage)]
    reached = [*stages(plan, scores, keys, coverage).values()]
    counts = ", ".join(f"{reached.count(name)} in {name}" for name in ("V1", "V2", "V3"))
    parts = [_HEAD, f"{len(plan)} components: {counts}.", "", *rows]
    parts += ["", "## Planted bugs and Python code", "", *_whole(planted, python)]
    parts += ["", "## Coverage", "", *_covered(coverage)]
    parts += ["", "## Waivers", "", *_waivers(waivers)]
    return "\n".join([*parts, "", "## Long runs", "", *_long_runs(runs), ""])
