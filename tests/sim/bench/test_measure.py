"""The bare loops of two versions run alternately, and each counts with its best run."""

from pathlib import Path

import pytest

from intloom.hw.spec.params import preset
from intloom.sim.bench import measure
from intloom.sim.bench.workload import dense_program
from intloom.sim.rtl import bare
from intloom.sim.rtl.backend import make_job
from intloom.sim.rtl.bare import BareResult
from intloom.sim.rtl.build import Build
from intloom.sim.rtl.job import RunFiles
from intloom.sim.rtl.options import RtlOptions

CLOCKED = {"vec": 25, "load": 104}
SECONDS = {"new": [3.0, 1.0], "old": [4.0, 5.0]}


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The simulators that ran; each is named by its Verilog."""
    done: list[str] = []

    def run(simulator: Build, *_: object) -> BareResult:
        done.append(simulator.key)
        return BareResult(100, SECONDS[simulator.key][done.count(simulator.key) - 1], finished=True, clocked=CLOCKED)

    monkeypatch.setattr(measure, "verilog_of", lambda _params: "new")
    monkeypatch.setattr(measure, "build_bare", lambda verilog: Build(Path(), 0.0, cached=True, key=verilog))
    monkeypatch.setattr(measure, "run_bare", run)
    return done


def test_versions_run_alternately_and_the_best_run_counts(runs: list[str]) -> None:
    program, inputs = dense_program(preset("nano"), side=4, blocks=1, repeats=1)
    speeds = list(measure.measure_bare(program, inputs, 2, "old"))
    assert runs == ["new", "old", "new", "old"]
    assert [(s.bench, s.seconds) for s in speeds] == [("bare loop", 1.0), ("bare loop, baseline", 4.0)]


def test_without_a_baseline_only_the_present_version_runs(runs: list[str]) -> None:
    program, inputs = dense_program(preset("nano"), side=4, blocks=1, repeats=1)
    assert [s.seconds for s in measure.measure_bare(program, inputs, 2)] == [1.0]
    assert runs == ["new", "new"]


def test_the_share_of_cycles_with_a_stopped_clock(runs: list[str]) -> None:
    """A gate may count more edges than the run has cycles: those before the start command."""
    program, inputs = dense_program(preset("nano"), side=4, blocks=1, repeats=1)
    (speed,) = measure.measure_bare(program, inputs, 1)
    assert speed.stopped == {"vec": 0.75, "load": 0.0}


def test_the_bare_loop_returns_what_its_clock_gates_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = RunFiles(tmp_path)
    log = '{"cycles": 7, "seconds": 0.5, "finished": true, "registers": []}\nclock TOP.npu.engine.mac.epilogue_gate 5\n'
    monkeypatch.setattr(bare, "prepare", lambda *_: None)
    monkeypatch.setattr(bare, "run_simulator", lambda *_: files.log.write_text(log))
    program, _ = dense_program(preset("nano"), side=4, blocks=1, repeats=1)
    job = make_job(program, RtlOptions(limit=1, watchdog=1), ())
    result = bare.run_bare(Build(Path(), 0.0, cached=True), job, files)
    assert result == BareResult(7, 0.5, finished=True, clocked={"epilogue": 5})
