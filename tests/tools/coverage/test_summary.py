"""Coverage of components: modules of the Verilog belong to the component at their path."""

from __future__ import annotations

from pathlib import Path

from intloom.hw.spec.params import preset
from tools.coverage.counts import Point
from tools.coverage.page import Tally
from tools.coverage.summary import Share, Summary, component_of, component_paths, read_summary, shares, write_summary

PATHS = {"npu": "npu:Npu", "npu.engine.mac": "mac.unit:MacUnit", "npu.engine.mac.loader": "mac.loader:Loader"}


def test_a_module_belongs_to_the_component_at_or_above_its_path() -> None:
    assert component_of("npu.engine.mac.loader$17", PATHS) == "mac.loader:Loader"
    assert component_of("npu.engine.mac.loader.words", PATHS) == "mac.loader:Loader"
    assert component_of("npu.engine.mac", PATHS) == "mac.unit:MacUnit"
    assert component_of("npu.other", PATHS) == "npu:Npu"
    assert component_of("intloom_mac_array", PATHS) == "mac.array.mac_array:MacArray"
    assert component_of("intloom_clock_gate", PATHS) == "intloom_clock_gate"


def test_modules_of_one_component_are_added_up(tmp_path: Path) -> None:
    missed = [Point("npu.engine.mac.loader", "line", 3, "")]
    found = {
        ("npu.engine.mac.loader", "line"): Tally(3, 1, missed),
        ("npu.engine.mac.loader.words", "line"): Tally(6, 0),
        ("npu", "toggle"): Tally(5, 2),
    }
    components = shares(found, PATHS)
    assert components == {"mac.loader:Loader": {"line": Share(9, 1, 1)}, "npu:Npu": {"toggle": Share(5, 0, 2)}}
    summary = Summary("2026-01-02", "abc", 3, 4, components)
    write_summary(summary, tmp_path / "coverage.json")
    assert read_summary(tmp_path / "coverage.json") == summary
    assert (summary.total("line").percent, summary.total("branch")) == (90.0, Share())
    assert read_summary(tmp_path / "missing.json") is None


def test_the_accelerator_has_its_components() -> None:
    paths = component_paths(preset("nano"))
    assert paths["npu.engine.mac.sequencer.planner"] == "mac.issue.tile_planner:TilePlanner"
    assert paths["npu.engine.arbiter"] == "control.arbiter:ReadArbiter"
