"""The bare loop counts with its best run, and with the cycles in which clocks were stopped."""

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
SECONDS = (3.0, 1.0)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The simulators that ran; each is named by its Verilog."""
    done: list[str] = []

    def run(simulator: Build, *_: object) -> BareResult:
        done.append(simulator.key)
        return BareResult(100, SECONDS[len(done) - 1], finished=True, clocked=CLOCKED)

    monkeypatch.setattr(measure, "verilog_of", lambda _params: "npu")
    monkeypatch.setattr(measure, "build_bare", lambda verilog: Build(Path(), 0.0, cached=True, key=verilog))
    monkeypatch.setattr(measure, "run_bare", run)
    return done


def test_the_best_run_counts(runs: list[str]) -> None:
    program, inputs = dense_program(preset("nano"), side=4, blocks=1, repeats=1)
    assert measure.measure_bare(program, inputs, 2).seconds == 1.0
    assert runs == ["npu", "npu"]


def test_the_share_of_cycles_with_a_stopped_clock(runs: list[str]) -> None:
    """A gate may count more edges than the run has cycles: those before the start command."""
    program, inputs = dense_program(preset("nano"), side=4, blocks=1, repeats=1)
    assert measure.measure_bare(program, inputs, 1).stopped == {"vec": 0.75, "load": 0.0}


def test_the_bare_loop_returns_what_its_clock_gates_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = RunFiles(tmp_path)
    log = '{"cycles": 7, "seconds": 0.5, "finished": true, "registers": []}\nclock TOP.npu.engine.mac.epilogue_gate 5\n'
    monkeypatch.setattr(bare, "prepare", lambda *_: None)
    monkeypatch.setattr(bare, "run_simulator", lambda *_: files.log.write_text(log))
    program, _ = dense_program(preset("nano"), side=4, blocks=1, repeats=1)
    job = make_job(program, RtlOptions(limit=1, watchdog=1), ())
    result = bare.run_bare(Build(Path(), 0.0, cached=True), job, files)
    assert result == BareResult(7, 0.5, finished=True, clocked={"epilogue": 5})
