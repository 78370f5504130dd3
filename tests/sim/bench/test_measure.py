"""The bare loops of two versions run alternately, and each counts with its best run."""

import json
from pathlib import Path

import pytest

from intloom.common.errors import UsageError
from intloom.hw.spec.params import preset
from intloom.sim.bench import measure
from intloom.sim.bench.baseline import Baseline, read_baseline
from intloom.sim.bench.workload import dense_program
from intloom.sim.rtl import bare
from intloom.sim.rtl.backend import make_job
from intloom.sim.rtl.bare import BareResult
from intloom.sim.rtl.build import Build
from intloom.sim.rtl.job import Job, RunFiles
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
    speeds = list(measure.measure_bare(program, inputs, 2, Baseline("old")))
    assert runs == ["new", "old", "new", "old"]
    assert [(s.bench, s.seconds) for s in speeds] == [("bare loop", 1.0), ("bare loop, baseline", 4.0)]


def test_a_baseline_of_another_encoding_runs_its_own_workload(
    tmp_path: Path, runs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "npu.v").write_text("old")
    (tmp_path / "memory.bin").write_bytes(bytes(range(64)))
    numbers = {"word_bytes": 16, "memory_words": 4, "program_word": 1, "instructions": 9}
    (tmp_path / "workload.json").write_text(json.dumps(numbers))
    run, jobs, images = measure.run_bare, {}, {}

    def kept(simulator: Build, job: Job, files: RunFiles) -> BareResult:
        jobs[simulator.key], images[simulator.key] = job, files.memory.read_bytes()
        return run(simulator, job, files)

    monkeypatch.setattr(measure, "run_bare", kept)
    program, inputs = dense_program(preset("nano"), side=4, blocks=1, repeats=1)
    list(measure.measure_bare(program, inputs, 1, read_baseline(tmp_path)))
    assert runs == ["new", "old"]
    assert {name: getattr(jobs["old"], name) for name in numbers} == numbers
    assert images["old"] == bytes(range(64))
    assert (jobs["new"].instructions, len(images["new"])) == (len(program.instructions), program.memory_words * 4)


def test_a_baseline_folder_without_its_numbers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"folder of tools.baseline: .*No such file"):
        read_baseline(tmp_path)
    (tmp_path / "memory.bin").touch()
    (tmp_path / "workload.json").write_text('{"words": 4}')
    with pytest.raises(UsageError, match=r"workload.json must be as tools.baseline writes it"):
        read_baseline(tmp_path)


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
