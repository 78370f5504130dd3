"""The end of a night: every step runs, long suites are recorded, and the page is written."""

from __future__ import annotations

import json
from pathlib import Path

from tools.nightly import RECORDED, STEPS, complete
from tools.signoff.runs import read_runs


def case(suite: str, seed: int, outcome: str = "pass") -> dict[str, object]:
    return {"suite": suite, "seed": seed, "outcome": outcome, "instructions": 10, "cycles": 100, "seconds": 2.0}


def test_steps_run_and_long_suites_are_recorded(tmp_path: Path) -> None:
    cases = [case("smoke", 1), case("random", 4), case("random", 7), case("soak", 100, "fail")]
    (tmp_path / "results.json").write_text(json.dumps({"cases": cases}))
    called = []

    def run(*arguments: str) -> int:
        called.append(arguments)
        return int(arguments[0] == "tools.mutate")

    assert complete(tmp_path, run, tmp_path / "runs.json") == ["tools.mutate"]
    assert called == list(STEPS)
    runs = {r.name: (r.cases, r.failed, r.instructions, r.seeds) for r in read_runs(tmp_path / "runs.json")}
    assert runs == {RECORDED["random"]: (2, 0, 20, "4 to 7"), RECORDED["soak"]: (1, 1, 10, "100 to 100")}
    assert (tmp_path / "sign-off.md").read_text().startswith("# Sign-off")
