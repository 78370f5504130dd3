"""The pages of the sign-off and of the test plan of the repository as it is."""

from __future__ import annotations

from tools.coverage.summary import read_summary
from tools.coverage.waivers import read_waivers
from tools.mutate.planted import read_result
from tools.mutate.score import read_scores, sources_key
from tools.mutate.targets import NOT_MUTATED, targets
from tools.python_coverage import read_python_coverage
from tools.signoff.page import page, stages
from tools.signoff.runs import read_runs
from tools.testplan.page import page as test_plan_page
from tools.testplan.plan import read_plan
from tools.testplan.results import read_results


def _keys() -> dict[str, str]:
    return {name: sources_key(name, tests) for name, tests in targets().items()}


def present_page() -> str:
    """The sign-off page."""
    scores, measured = read_scores(), (read_result(), read_python_coverage())
    return page(read_plan(), scores, _keys(), NOT_MUTATED, read_runs(), read_summary(), read_waivers(), *measured)


def present_test_plan() -> str:
    """The page of the test plan, with stages and the last results."""
    plan = read_plan()
    return test_plan_page(plan, stages(plan, read_scores(), _keys(), read_summary()), read_results())
