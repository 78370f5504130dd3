"""The sign-off page of the repository as it is."""

from __future__ import annotations

from tools.coverage.summary import read_summary
from tools.coverage.waivers import read_waivers
from tools.mutate.score import read_scores, sources_key
from tools.mutate.targets import NOT_MUTATED, targets
from tools.signoff.page import page
from tools.signoff.runs import read_runs
from tools.testplan.plan import read_plan


def present_page() -> str:
    """The page of the data in the repository."""
    keys = {name: sources_key(name, tests) for name, tests in targets().items()}
    return page(read_plan(), read_scores(), keys, NOT_MUTATED, read_runs(), read_summary(), read_waivers())
