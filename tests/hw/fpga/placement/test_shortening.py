"""Moves of LUTs and flip-flops: paths get shorter, and nothing else changes."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from intloom.hw.fpga.placement import shortening
from intloom.hw.fpga.placement.paths import Paths
from intloom.hw.fpga.placement.shortening import Shortened, shorten
from tests.hw.fpga.placed import Cells, lut, module, netlists, register
from tests.hw.fpga.small_design import small_layout


def _shortened(folder: Path, cells: Cells) -> tuple[Shortened, Cells]:
    path = folder / "placed.json"
    path.write_text(json.dumps({"modules": {"top": module(cells)}}))
    result = shorten(path)
    (after,) = json.loads(path.read_text())["modules"].values()
    return result, after["cells"]


def _away() -> Cells:
    """Two LUTs far from the flip-flops at both ends of their path, and cells that have free sites beside them."""
    return {
        "from": register("X2/Y2/SLICEA.FF0", 1, 4),
        "one": lut("X80/Y40/SLICEA.K0", 2, 1),
        "two": lut("X80/Y40/SLICEB.K0", 3, 2),
        "to": register("X9/Y9/SLICEA.FF0", 4, 3),
        "there": lut("X5/Y5/SLICEA.K0", 5, 4),
    }


def test_luts_far_from_both_ends_of_their_path_move_between_them(tmp_path: Path) -> None:
    result, cells = _shortened(tmp_path, _away())
    assert result.before > 20_000
    assert result.after < shortening._TARGET
    assert result.after == Paths(module(cells)).total.max()
    assert result.moves >= 2


def test_short_paths_are_left_alone(tmp_path: Path) -> None:
    cells = {"from": register("X2/Y2/SLICEA.FF0", 1, 4), "to": register("X9/Y9/SLICEA.FF0", 4, 1)}
    result, after = _shortened(tmp_path, cells)
    assert result == Shortened(result.before, result.before, 0)
    assert after == cells


def test_moves_that_shorten_nothing_are_taken_back(tmp_path: Path) -> None:
    """No tile between two distant flip-flops has a free site for them: their clocks differ from its flip-flops'."""
    cells = {
        "from": register("X2/Y2/SLICEA.FF0", 1, 4, CLK=7),
        "to": register("X90/Y90/SLICEA.FF0", 4, 1, CLK=8),
        "between": register("X40/Y40/SLICEA.FF0", 5, 5, CLK=9),
    }
    result, after = _shortened(tmp_path, cells)
    assert (result.moves, after) == (0, cells)


@given(cells=netlists())
def test_only_sites_change_and_each_has_one_cell(cells: Cells, tmp_path_factory: pytest.TempPathFactory) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shortening, "_TARGET", 1_500)
        result, after = _shortened(tmp_path_factory.mktemp("shorten"), copy.deepcopy(cells))
    assert result.after == Paths(module(after)).total.max() <= result.before
    sites = {name: cell["attributes"].pop("NEXTPNR_BEL") for name, cell in after.items()}
    for cell in cells.values():
        del cell["attributes"]["NEXTPNR_BEL"]
    assert after == cells
    assert len(set(sites.values())) == len(sites)
    for name in after:
        if name.startswith("fed"):
            assert sites[name] == sites[name.replace("fed", "lut")].replace(".K", ".FF")


def test_nextpnr_routes_moved_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shortening, "_TARGET", 0)
    flow, command = small_layout(tmp_path)
    before = json.loads((tmp_path / "placed.json").read_text())
    result = shorten(tmp_path / "placed.json")
    assert result.moves > 0
    assert result.after <= result.before
    flow.run([*command, "--json", "placed.json", "--no-pack", "--no-place", "--write", "layout.json"], "route.log")
    sites, after = (_sites(netlist) for netlist in (before, json.loads((tmp_path / "layout.json").read_text())))
    assert sites.keys() == after.keys()
    assert sites != after
    assert "Routing complete." in (tmp_path / "route.log").read_text()


def _sites(netlist: Any) -> dict[str, str]:
    (top,) = netlist["modules"].values()
    return {name: cell["attributes"].get("NEXTPNR_BEL", "") for name, cell in top["cells"].items()}
