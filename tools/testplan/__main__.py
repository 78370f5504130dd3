"""Records results for the page of the test plan: `python -m tools.testplan REPORT`.

The report is that of `pytest --junit-xml REPORT`.
"""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path

from tools.signoff.runs import present_commit
from tools.testplan.plan import read_plan
from tools.testplan.results import outcomes_of, record


def main() -> None:
    """Parse the command line and record."""
    parser = argparse.ArgumentParser(prog="python -m tools.testplan", description=__doc__)
    parser.add_argument("report", type=Path, help="JUnit report of pytest")
    tests = {test for entry in read_plan() for item in entry.items for test in item.tests}
    today = datetime.now(UTC).date().isoformat()
    record(outcomes_of(parser.parse_args().report), tests, today, present_commit())


if __name__ == "__main__":
    main()
