"""Coverage of components: modules of the Verilog belong to the component at their path."""

from pathlib import Path

import pytest

from intloom.common import evidence
from intloom.hw.spec.params import preset
from tools.coverage import summary
from tools.coverage.counts import Point
from tools.coverage.page import Tally
from tools.coverage.summary import Share, component_of, component_paths, shares

PATHS = {"npu": "npu:Npu", "npu.engine.mac": "mac.unit:MacUnit", "npu.engine.mac.loader": "mac.loader:Loader"}


def test_a_module_belongs_to_the_component_at_or_above_its_path() -> None:
    assert component_of("npu.engine.mac.loader$17", PATHS) == "mac.loader:Loader"
    assert component_of("npu.engine.mac.loader.words", PATHS) == "mac.loader:Loader"
    assert component_of("npu.engine.mac", PATHS) == "mac.unit:MacUnit"
    assert component_of("npu.other", PATHS) == "npu:Npu"
    assert component_of("intloom_mac_array", PATHS) == "mac.array.mac_array:MacArray"
    assert component_of("intloom_clock_gate", PATHS) == "intloom_clock_gate"


def test_modules_of_one_component_are_added_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missed = [Point("npu.engine.mac.loader", "line", 3, "")]
    found = {
        ("npu.engine.mac.loader", "line"): Tally(3, 1, missed),
        ("npu.engine.mac.loader.words", "line"): Tally(6, 0),
        ("npu", "toggle"): Tally(5, 2),
    }
    components = shares(found, PATHS)
    assert components == {"mac.loader:Loader": {"line": Share(9, 1, 1)}, "npu:Npu": {"toggle": Share(5, 0, 2)}}
    monkeypatch.setattr(summary, "SUMMARY", path := tmp_path / "coverage.json")
    summary.write_summary(4, ["LOAD.n0 1"], components)
    row = evidence.read(path)["all"]
    assert summary.read_shares(row) == components
    assert (row.values["cover_points"], row.values["missed_cover_points"]) == (4, ["LOAD.n0 1"])
    assert (Share(9, 1) + Share(0, 2, 3)).percent == 75.0


def test_the_accelerator_has_its_components() -> None:
    paths = component_paths(preset("nano"))
    assert paths["npu.engine.mac.sequencer.planner"] == "mac.issue.tile_planner:TilePlanner"
    assert paths["npu.engine.arbiter"] == "control.arbiter:ReadArbiter"
