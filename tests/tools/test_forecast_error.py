"""Forecast against RTL: what is recorded, and one measurement."""

import pytest

from intloom.common import evidence
from intloom.compiler.program.program import MemoryTiming
from intloom.hw.spec.params import changed, preset
from tools import forecast_error

RUNS = [
    (name, run) for name, row in evidence.read(forecast_error.RESULTS).items() for run in row.values.get("runs", ())
]


def test_every_recorded_run_is_within_3_percent_with_equal_bytes():
    if not RUNS:
        pytest.skip("no run is recorded yet: make forecast")
    for name, run in RUNS:
        error = run["predicted"] / run["cycles"] - 1
        assert abs(error) < 0.03 and error == run["error"], (name, run)
        assert run["compared_bytes"] > 0 and run["mismatches"] == 0


def test_draws_are_the_same_again_and_differ():
    drawn = [forecast_error.draw(seed) for seed in range(20)]
    assert drawn == [forecast_error.draw(seed) for seed in range(20)]
    assert len(set(drawn)) == 20 and len({params.rows for params, _ in drawn}) > 2


@pytest.mark.slow
def test_a_configuration_is_measured(monkeypatch):
    monkeypatch.setattr(forecast_error, "NETWORKS", (("tiny", 16), ("c2f", 32)))
    monkeypatch.setattr(forecast_error, "draw", lambda _seed: (preset("nano"), MemoryTiming(bandwidth=0.5)))
    values = forecast_error.measure(0)
    assert [run["network"] for run in values["runs"]] == ["tiny 16", "c2f 32"]
    assert abs(values["runs"][1]["error"]) < 0.02
    tall = changed(preset("nano"), {"rows": 32, "weight_kib": 2})
    monkeypatch.setattr(forecast_error, "draw", lambda _seed: (tall, MemoryTiming()))
    assert "weight" in forecast_error.measure(0)["reason"]
