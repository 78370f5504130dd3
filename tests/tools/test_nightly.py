"""The end of a night: every step runs, long suites are recorded."""

import json
import re
import subprocess
import sys
from datetime import date
from pathlib import Path
from threading import Barrier

import pytest

from intloom.common import evidence
from tools.nightly import ALL_TESTS, complete, stages

ROOT = Path(__file__).parents[2]
GATES = "tests/hw/fpga/test_gates"
SMALLER = {
    "tests/hw/npu/test_npu.py::test_programs_can_be_stopped_at_any_moment": (
        "tests/hw/npu/test_clock_gating.py::test_gated_clocks_change_no_output"
    ),
    f"{GATES}.py::test_the_netlist_runs_as_the_accelerator_does": (
        f"{GATES}_of_components.py::test_the_netlist_has_the_outputs_of_the_component"
    ),
    "tests/runtime/test_fuzz.py::test_libfuzzer_finds_nothing": (
        "tests/runtime/test_fuzz.py::test_the_corpus_is_harmless"
    ),
}
"""Tests of which the nightly run has all cases, and those that `make test` has instead."""


_COLLECT = """
import sys, pytest

class Collector:
    def pytest_collection_finish(self, session):
        for item in session.items:
            print("\\n@", item.get_closest_marker("nightly") is not None, item.nodeid.partition("[")[0])

pytest.main(["--collect-only", "-q", "-m", sys.argv[1], *sys.argv[2:]], plugins=[Collector()])
"""


def functions(expression: str) -> tuple[set[str], set[str]]:
    """Functions with cases of every day and with nightly ones, from the files that name the marker."""
    files = [str(p) for p in (ROOT / "tests").rglob("test_*.py") if p != Path(__file__) and "nightly" in p.read_text()]
    command = [sys.executable, "-c", _COLLECT, expression, *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = re.findall(r"^@ (True|False) (\S+)", done.stdout, re.MULTILINE)
    return {name for marked, name in found if marked == "False"}, {name for marked, name in found if marked == "True"}


def case(suite: str, seed: int, outcome: str = "pass") -> dict[str, object]:
    return {"suite": suite, "seed": seed, "outcome": outcome, "instructions": 10, "cycles": 100, "seconds": 2.0}


def steps() -> list[tuple[str, ...]]:
    return [step for stage in stages(date(2026, 1, 2)) for step in stage]


def test_steps_run_and_long_suites_are_recorded(tmp_path: Path) -> None:
    cases = [case("smoke", 1), case("random", 4), case("random", 7), case("soak", 100, "fail")]
    (tmp_path / "results.json").write_text(json.dumps({"cases": cases}))
    called, together = [], Barrier(2)

    def run(*arguments: str) -> int:
        called.append(arguments)
        if arguments[0] in {"tests.hw.coverage", "tools.mutate"}:
            together.wait(timeout=60)
        return int(arguments[0] == "tools.mutate")

    assert complete(tmp_path, run, tmp_path / "runs.json") == ["tools.mutate"]
    assert called[0] == steps()[0]
    assert {step[0] for step in called} == {step[0] for step in steps()}
    runs = {name: row.values for name, row in evidence.read(tmp_path / "runs.json").items()}
    assert runs == {
        "random": {"cases": 2, "failed": 0, "instructions": 20, "cycles": 200, "seeds": "4 to 7"},
        "soak": {"cases": 1, "failed": 1, "instructions": 10, "cycles": 100, "seeds": "100 to 100"},
    }


def test_every_night_draws_other_mutations() -> None:
    found = {step[0]: step[1:] for step in steps()}
    assert found["tools.mutate"][-2:] == ("--seed", "20260102")
    assert "--resume" not in found["tools.mutate"], "components with a score are measured again"
    assert "--erase" in found["tools.python_coverage"]


@pytest.mark.slow
def test_every_night_runs_the_full_sizes_and_make_test_a_smaller_case_of_each() -> None:
    found = {step[0]: step[1:] for step in steps()}
    assert found["tools.python_coverage"][-2:] == ("-m", ALL_TESTS)
    everyday, nightly = functions(ALL_TESTS)
    smaller = {SMALLER.get(name, name) for name in nightly}
    assert SMALLER.keys() <= nightly and smaller <= everyday, smaller - everyday
