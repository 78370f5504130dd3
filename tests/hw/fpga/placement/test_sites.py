"""Blocks change positions among the sites that the first placement took, and wires get shorter."""

import json
import sys
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intloom.common.errors import EnvironmentFault
from intloom.hw.fpga.blocks import MEMORY, MULTIPLIER
from intloom.hw.fpga.placement.sites import Placement, point_of, rearrange


def _cell(kind: str, site: str | None, *bits: int | str) -> dict[str, Any]:
    attributes = {} if site is None else {"NEXTPNR_BEL": site}
    return {"type": kind, "attributes": attributes, "connections": {f"P{i}": [bit] for i, bit in enumerate(bits)}}


def _logic(x: int, y: int, *bits: int | str) -> dict[str, Any]:
    return _cell("TRELLIS_COMB", f"X{x}/Y{y}/SLICEA.LUT0", *bits)


def _netlist(path: Path, cells: dict[str, Any]) -> Path:
    path.write_text(json.dumps({"modules": {"top": {"cells": cells}}}))
    return path


def _bound(netlist: Path) -> dict[str, str]:
    cells = json.loads(netlist.read_text())["modules"]["top"]["cells"]
    return {name: cell["attributes"]["BEL"] for name, cell in cells.items() if "BEL" in cell["attributes"]}


def test_two_blocks_that_stand_at_each_others_logic_exchange_sites(tmp_path: Path) -> None:
    cells = {
        "left": _logic(2, 5, 1),
        "right": _logic(60, 5, 2),
        "mine": _cell(MULTIPLIER, "X60/Y9/MULT18_0", 1, "0"),
        "yours": _cell(MULTIPLIER, "X2/Y9/MULT18_1", 2, "0"),
        "ram": _cell(MEMORY, "X30/Y9/EBR0", 1),
        "clock": _cell("DCCA", None, 3),
    }
    netlist = _netlist(tmp_path / "chip.json", {name: {"attributes": {}} for name in cells})
    before, after = rearrange(_netlist(tmp_path / "placed.json", cells), netlist)
    # Net 1 leads from column 2 over the RAM to 60, then only to the RAM; net 2 from 60 to 2, then nowhere far.
    assert (before, after) == (58 + 4 + 58 + 4, 28 + 4 + 4)
    assert _bound(netlist) == {"mine": "X2/Y9/MULT18_1", "yours": "X60/Y9/MULT18_0", "ram": "X30/Y9/EBR0"}


@given(
    sites=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=5, unique=True),
    logic=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40), st.integers(0, 4)), min_size=1, max_size=12),
)
def test_no_other_order_of_the_blocks_is_shorter(
    sites: list[tuple[int, int]], logic: list[tuple[int, int, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """With nets of two ends each, of which one is a block, the best order is known by trying them all."""
    wires = [(x, y, number % len(sites)) for x, y, number in logic]
    cells = {f"logic{i}": _logic(x, y, i) for i, (x, y, _) in enumerate(wires)}
    names = [f"X{x}/Y{y}/EBR0" for x, y in sites]
    for number, site in enumerate(names):
        cells[f"ram{number}"] = _cell(MEMORY, site, *(i for i, (_, _, block) in enumerate(wires) if block == number))
    folder = tmp_path_factory.mktemp("sites")
    netlist = _netlist(folder / "chip.json", {name: {"attributes": {}} for name in cells})
    before, after = rearrange(_netlist(folder / "placed.json", cells), netlist)
    lengths = [
        sum(abs(x - order[block][0]) + abs(y - order[block][1]) for x, y, block in wires)
        for order in permutations(sites)
    ]
    assert before == lengths[0]
    assert after == min(lengths)
    assert sorted(_bound(netlist).values()) == (sorted(names) if after < before else [])


def test_where_nothing_is_gained_no_block_is_bound(tmp_path: Path) -> None:
    cells = {name: _cell(MEMORY, f"X{position}/Y1/EBR0", 7) for position, name in enumerate(("one", "two", "three"))}
    netlist = _netlist(tmp_path / "chip.json", {name: {"attributes": {}} for name in cells})
    assert rearrange(_netlist(tmp_path / "placed.json", cells), netlist) == (2, 2)
    assert _bound(netlist) == {}


@given(
    st.lists(st.integers(0, 40), min_size=2, max_size=6, unique=True),
    st.lists(st.tuples(st.integers(0, 40), st.sets(st.integers(0, 5), min_size=1)), min_size=1, max_size=8),
)
def test_all_wire_together_never_gets_longer(columns: list[int], nets: list[tuple[int, set[int]]]) -> None:
    """Not even by nets that lead to several blocks, which are each sent to the logic on it as if they were alone."""
    cells = {f"logic{i}": _logic(x, 2, i) for i, (x, _) in enumerate(nets)}
    for number, column in enumerate(columns):
        joined = [i for i, (_, blocks) in enumerate(nets) if number in blocks]
        cells[f"ram{number}"] = _cell(MEMORY, f"X{column}/Y2/EBR0", *joined)
    with TemporaryDirectory() as name:
        netlist = _netlist(Path(name, "chip.json"), {cell: {"attributes": {}} for cell in cells})
        before, after = rearrange(_netlist(Path(name, "placed.json"), cells), netlist)
    assert after <= before


def test_a_design_without_blocks_stays_as_it_is(tmp_path: Path) -> None:
    netlist = _netlist(tmp_path / "chip.json", {"a": {"attributes": {}}})
    assert rearrange(_netlist(tmp_path / "placed.json", {"a": _logic(3, 4, 1), "b": _logic(5, 4, 1)}), netlist) == (
        2,
        2,
    )
    assert _bound(netlist) == {}


def test_nets_that_lead_everywhere_do_not_count() -> None:
    cells = {str(i): _logic(i, 0, 1) for i in range(2001)}
    assert Placement({"cells": cells}).length() == 0
    del cells["2000"]
    assert Placement({"cells": cells}).length() == 1999


def test_a_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    placed = _netlist(tmp_path / "placed.json", {"a": _cell(MEMORY, "X1/Y1/EBR0", 1), "b": _logic(5, 4, 1)})
    with pytest.raises(EnvironmentFault, match=r'scipy.*: pip install "intloom\[fpga\]"'):
        rearrange(placed, tmp_path / "chip.json")


def test_a_site_says_where_it_is() -> None:
    assert point_of("X12/Y3/EBR2") == (12, 3)
