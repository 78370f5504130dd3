"""Long runs that were recorded: suites of random programs, changed programs, soak."""

from __future__ import annotations

import json
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from intloom.common.atomic_write import write_text

ROOT = Path(__file__).parents[1]
RUNS = ROOT / "docs" / "data" / "long-runs.json"


@dataclass(frozen=True)
class LongRun:
    """One recorded run of many cases."""

    name: str
    date: str
    commit: str
    cases: int
    failed: int
    instructions: int
    cycles: int
    seconds: int
    """Sum over the cases."""
    seeds: str = ""
    """First and last seed."""


def read_runs(path: Path = RUNS) -> list[LongRun]:
    """All recorded runs, oldest first."""
    if not path.exists():
        return []
    return [LongRun(**row) for row in json.loads(path.read_text(encoding="utf-8"))]


def add_run(run: LongRun, path: Path = RUNS) -> None:
    """Append a run; one of the same name and commit is replaced."""
    kept = [r for r in read_runs(path) if (r.name, r.commit) != (run.name, run.commit)]
    write_text(path, json.dumps([asdict(r) for r in [*kept, run]], indent=1) + "\n")


def run_of_regression(report: dict[str, Any], name: str, date: str, commit: str) -> LongRun:
    """The totals of a regression's `results.json`."""
    cases = report["cases"]
    seeds = sorted(case["seed"] for case in cases)
    return LongRun(
        name,
        date,
        commit,
        cases=len(cases),
        failed=sum(case["outcome"] != "pass" for case in cases),
        instructions=sum(case["instructions"] for case in cases),
        cycles=sum(case["cycles"] for case in cases),
        seconds=round(sum(case["seconds"] for case in cases)),
        seeds=f"{seeds[0]} to {seeds[-1]}" if seeds else "",
    )


def present_commit() -> str:
    """The commit of the working tree."""
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()
