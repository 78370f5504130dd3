"""The page of a regression: failed cases first, with their message and command."""

from intloom.report.regression import write_regression
from intloom.sim.regress.case import CaseResult, Outcome
from intloom.sim.regress.runner import Summary


def result(name, outcome=Outcome.PASS, message=""):
    return CaseResult(
        suite="smoke", name=name, key=name, outcome=outcome, seconds=0.5, message=message, reproduce=f"run {name}",
        version="v", cycles=12345, compared_bytes=6,
    )  # fmt: skip


def test_failed_cases_are_first_with_their_command(tmp_path):
    found = Summary((result("first"), result("second", Outcome.FAIL, "tensor <x> differs"), result("third")), 1)
    page = write_regression(found, tmp_path).read_text()
    assert page.index(">second<") < page.index(">first<")
    for shown in (
        "tensor &lt;x&gt; differs",
        "<code>run second</code>",
        "12,345",
        "1 of 3 fail",
        "1 passed in an earlier",
    ):
        assert shown in page


def test_a_regression_without_failures_says_so(tmp_path):
    assert "all cases pass" in write_regression(Summary((result("only"),), 0), tmp_path).read_text()
