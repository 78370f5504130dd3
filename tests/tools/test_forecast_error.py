"""Forecast against RTL: what is recorded, and one measurement."""

import pytest

from intloom.common import evidence
from intloom.compiler.program.program import MemoryTiming
from intloom.hw.spec.params import changed, preset
from tools import forecast_error


def test_every_recorded_run_is_within_3_percent_with_equal_bytes():
    rows = {
        name: row.values["runs"] for name, row in evidence.read(forecast_error.RESULTS).items() if "runs" in row.values
    }
    assert len(rows) >= forecast_error.CONFIGURATIONS
    for name, runs in rows.items():
        assert [run["network"] for run in runs] == [f"{network} {size}" for network, size in forecast_error.NETWORKS]
        for run in runs:
            error = run["predicted"] / run["cycles"] - 1
            assert abs(error) < 0.03 and error == run["error"], (name, run)
            assert run["compared_bytes"] > 0 and run["mismatches"] == 0


def test_draws_are_the_same_again_and_differ():
    drawn = [forecast_error.draw(seed) for seed in range(20)]
    assert drawn == [forecast_error.draw(seed) for seed in range(20)]
    assert len(set(drawn)) == 20 and len({params.rows for params, _ in drawn}) > 2


@pytest.mark.slow
def test_a_configuration_is_measured_again_only_where_verilog_program_or_memory_have_changed(monkeypatch):
    monkeypatch.setattr(forecast_error, "NETWORKS", (("tiny", 16), ("c2f", 32)))
    monkeypatch.setattr(forecast_error, "draw", lambda _seed: (preset("nano"), MemoryTiming(bandwidth=0.5)))
    again, runs, real = [], {}, forecast_error.run_point

    def run_point(_name, model, *others):
        """One run of each network: whether there is another does not depend on what it gives."""
        again.append(model)
        if model not in runs:
            runs[model] = real("", model, *others)
        return runs[model]

    monkeypatch.setattr(forecast_error, "run_point", run_point)
    values = forecast_error.measure({}, 0)
    tiny, c2f = values["runs"]
    assert [tiny["network"], c2f["network"]] == ["tiny 16", "c2f 32"] and abs(c2f["error"]) < 0.02
    again.clear()
    # The forecast is the present one, also of a run that is kept.
    known = {run["content"]: run | {"predicted": 1, "error": -1.0} for run in values["runs"]}
    assert forecast_error.measure(known, 0) == values and not again
    assert forecast_error.measure({c2f["content"]: c2f}, 0) == values and len(again) == 1
    traced = changed(preset("nano"), {"trace": not preset("nano").trace})
    for params, memory in ((traced, MemoryTiming(bandwidth=0.5)), (preset("nano"), MemoryTiming(bandwidth=0.25))):
        monkeypatch.setattr(forecast_error, "draw", lambda _seed, drawn=(params, memory): drawn)
        assert forecast_error.measure(known, 0) != values
    assert len(again) == 5
    tall = changed(preset("nano"), {"rows": 32, "weight_kib": 2})
    monkeypatch.setattr(forecast_error, "draw", lambda _seed: (tall, MemoryTiming()))
    assert "weight" in forecast_error.measure({}, 0)["reason"]
