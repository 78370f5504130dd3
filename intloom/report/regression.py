"""The page of a regression."""

from pathlib import Path

from intloom.files import write_text
from intloom.report.template import fill
from intloom.sim.regress.case import Outcome
from intloom.sim.regress.reports import counts
from intloom.sim.regress.runner import Summary

_COLORS = {Outcome.PASS.value: "goodtext", Outcome.FAIL.value: "badtext", Outcome.ERROR.value: "badtext"}
"""Classes of the style sheet."""


def write_regression(summary: Summary, folder: Path) -> Path:
    """Write report.html for a regression; failed cases are first."""
    page = folder / "report.html"
    results = sorted(summary.results, key=lambda r: r.outcome is Outcome.PASS)
    text = fill(
        "regression.html.j2",
        results=results,
        counts=counts(summary),
        colors=_COLORS,
        ok=summary.ok,
        failed=len(summary.failed),
        resumed=summary.resumed,
    )
    write_text(page, text)
    return page
