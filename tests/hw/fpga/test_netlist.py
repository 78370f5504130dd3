"""Ends of carry chains: those that lead nowhere are cut off, all others stay."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hw.fpga.netlist import trim


def _cell(init: int, cin: int | str, cout: int) -> dict[str, Any]:
    return {
        "type": "CCU2C",
        "parameters": {"INIT0": f"{init:016b}"},
        "connections": {"CIN": [cin], "C0": ["1"], "D0": ["1"], "S0": [99], "COUT": [cout]},
    }


@pytest.mark.parametrize(
    ("init", "cin", "kept"),
    [(0x000A, "0", "x"), (0x000A, "1", "x"), (0x0008, "0", "x"), (0x000A, 7, 7), (0x96AA, "1", "1")],
)
def test_a_carry_is_cut_only_where_the_cell_ignores_it(
    init: int, cin: int | str, kept: int | str, tmp_path: Path
) -> None:
    cells = {"first": _cell(init, cin, 50), "second": _cell(0x96AA, 50, 51), "last": _cell(0x96AA, 51, 52)}
    path = tmp_path / "npu.json"
    path.write_text(json.dumps({"modules": {"npu": {"cells": cells, "ports": {"carry": {"bits": [52]}}}}}))
    assert trim(path) == (kept == "x")
    after = json.loads(path.read_text())["modules"]["npu"]["cells"]
    assert after["first"]["connections"]["CIN"] == [kept]
    assert [after[name]["connections"]["COUT"] for name in after] == [[50], [51], [52]]


def test_a_carry_out_that_nobody_reads_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "npu.json"
    path.write_text(json.dumps({"modules": {"npu": {"cells": {"only": _cell(0x96AA, "0", 5)}, "ports": {}}}}))
    assert trim(path) == 1
    assert json.loads(path.read_text())["modules"]["npu"]["cells"]["only"]["connections"]["COUT"] == ["x"]
