"""The end of a night: every step runs, long suites are recorded, and the page is written."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

from tools.nightly import RECORDED, complete, steps
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
    assert [step[0] for step in called] == [step[0] for step in steps(date(2026, 1, 2))]
    runs = {r.name: (r.cases, r.failed, r.instructions, r.seeds) for r in read_runs(tmp_path / "runs.json")}
    assert runs == {RECORDED["random"]: (2, 0, 20, "4 to 7"), RECORDED["soak"]: (1, 1, 10, "100 to 100")}
    assert (tmp_path / "sign-off.md").read_text().startswith("# Sign-off")


def test_every_night_draws_other_mutations_and_plants_all_bugs() -> None:
    found = {step[0]: step[1:] for step in steps(date(2026, 1, 2))}
    assert found["tools.mutate"][-2:] == ("--seed", "20260102")
    assert "--resume" not in found["tools.mutate"], "components with a score are measured again"
    assert found["tools.mutate.planted"] == (), "without names: all"
    assert "--erase" in found["tools.python_coverage"]
