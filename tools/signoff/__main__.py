"""Records a regression for the sign-off page: `python -m tools.signoff FOLDER NAME`."""

from __future__ import annotations

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path

from tools.signoff.runs import add_run, present_commit, run_of_regression


def main() -> None:
    """Parse the command line and record."""
    parser = argparse.ArgumentParser(prog="python -m tools.signoff", description=__doc__)
    parser.add_argument("folder", type=Path, help="output folder of `intloom regress`")
    parser.add_argument("name", help="what was run, such as 'random programs'")
    options = parser.parse_args()
    report = json.loads((options.folder / "results.json").read_text(encoding="utf-8"))
    today = datetime.now(UTC).date().isoformat()
    add_run(run_of_regression(report, options.name, today, present_commit()))


if __name__ == "__main__":
    main()
