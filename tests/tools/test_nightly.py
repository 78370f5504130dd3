"""The nightly run has the full size of everything that `make test` has a smaller case of."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GATES = "tests/hw/fpga/test_gates"
ALL_TESTS = "nightly or not evidence"
"""Expression of pytest: the tests of `make test`, and the full sizes, marked `nightly`, that it leaves out."""
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


@pytest.mark.slow
def test_every_night_runs_the_full_sizes_and_make_test_a_smaller_case_of_each() -> None:
    command = re.search(r"tools.python_coverage .* -m \"(.*)\"; ", (ROOT / "Makefile").read_text())
    assert command is not None and command[1] == ALL_TESTS
    everyday, nightly = functions(ALL_TESTS)
    smaller = {SMALLER.get(name, name) for name in nightly}
    assert SMALLER.keys() <= nightly and smaller <= everyday, smaller - everyday
