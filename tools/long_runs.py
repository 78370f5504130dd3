"""The totals of the long suites of a regression, kept in docs/data/long-runs.json: `make nightly`.

`python -m tools.long_runs FOLDER`, with the output folder of the regression.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from intloom.common import evidence
from intloom.sim.random_programs.hardware import HARDWARE_COUNT, hardware_of
from intloom.sim.rtl.verilog import verilog_of

ROOT = Path(__file__).parents[1]
RUNS = ROOT / "docs" / "data" / "long-runs.json"
RECORDED = ("random", "soak")
"""Suites whose last run is recorded."""


def totals(cases: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The totals of a suite."""
    seeds = [case["seed"] for case in cases]
    return {
        "cases": len(cases),
        "failed": sum(case["outcome"] != "pass" for case in cases),
        "instructions": sum(case["instructions"] for case in cases),
        "cycles": sum(case["cycles"] for case in cases),
        "seeds": f"{min(seeds)} to {max(seeds)}",
    }


def content() -> str:
    """The hash of the Verilog on which the suites run."""
    return evidence.content_hash(verilog_of(hardware_of(number)).encode() for number in range(HARDWARE_COUNT))


def main(folder: Path) -> None:
    """Record the suites of a regression that ran in a folder."""
    report = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    for suite in RECORDED:
        if cases := [case for case in report["cases"] if case["suite"] == suite]:
            row = evidence.measured(totals(cases), "make nightly", ROOT, ("hw/npu.py",), content())
            evidence.record(RUNS, suite, row)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
