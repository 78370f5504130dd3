"""`intloom bench`: a row for every bench and for every network, and the ratios that the fast bench is for."""

import json

import pytest

from intloom.cli import main
from intloom.common.errors import ExitCode
from intloom.hw.spec.params import preset
from intloom.sim.bench.measure import Speed
from intloom.sim.rtl.verilog import verilog_of


@pytest.mark.slow
def test_benches_and_networks_are_measured(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("intloom.sim.bench.compare._LONG", {"side": 12, "repeats": 1})
    target = tmp_path / "speed.json"
    baseline = tmp_path / "npu.v"
    baseline.write_text(verilog_of(preset("nano")))
    words = ["bench", "--preset", "nano", "--network", "tiny@16", "--within", "10", "--baseline", str(baseline)]
    assert main([*words, "-o", str(target), "--json", "-q"]) == ExitCode.OK
    record = json.loads(capsys.readouterr().out)
    assert record == json.loads(target.read_text())
    cycles = {row["bench"]: row["cycles"] for row in record["benches"]}
    assert cycles["bare loop, baseline"] == cycles["bare loop"]
    speeds = {row["bench"]: row["hertz"] for row in record["benches"]}
    assert list(speeds) == ["bare loop", "bare loop, baseline", "fast bench"]
    (network,) = record["networks"]
    assert network["cycles"] > 0
    assert network["compared_bytes"] == 16 * 16 * 16
    expected = network["forecast"]
    assert abs(expected["error"]) < 0.1, "a network of a few hundred cycles"
    assert sum(chain["measured"] for chain in expected["chains"]) == network["cycles"]


@pytest.mark.slow
def test_a_forecast_that_is_too_far_off_is_an_error(tmp_path, capsys, monkeypatch):
    # The speeds of benches do not matter here.
    monkeypatch.setattr("intloom.cli.bench.compare_benches", lambda *_: iter([Speed("bare loop", 1, 1.0, 0.0)]))
    target = tmp_path / "speed.json"
    words = ["bench", "--preset", "nano", "--network", "c2f@32", "--within", "0", "-o", str(target), "-q"]
    assert main(words) == ExitCode.MISMATCH
    assert "must be within 0 %" in capsys.readouterr().err
    assert json.loads(target.read_text())["networks"][0]["forecast"]["worst"] is not None
