"""The page of measured rows: each preset's row is replaced, the others stay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hw.fpga.flow import DEVICES, PRESET_DEVICES
from hw.fpga.report import CriticalPath, Resource, Result
from hw.fpga.table import path_row, row, update
from hw.spec.params import PRESETS

USED = {"LUT": Resource(1, 24288), "FF": Resource(2, 24288), "DSP": Resource(3, 28), "RAM": Resource(4, 56)}
PATH = CriticalPath("npu.a", "npu.b", 9.876, 6.0, 5)
RESULT = Result("LFE5U-25F", USED, 101.25, PATH, 130.0)


def test_a_row_says_everything() -> None:
    assert row("small", RESULT) == ("| small | LFE5U-25F | 1 of 24288 | 2 of 24288 | 3 of 28 | 4 of 56 | 101.2 | 2 |")


def test_a_path_names_its_ends() -> None:
    assert path_row("small", RESULT) == "| small | 101.2 | 9.88 | 6.00 | 5 | `npu.a` | `npu.b` |"


def test_measuring_again_replaces_only_that_row(tmp_path: Path) -> None:
    page = tmp_path / "fpga.md"
    update(page, "small", RESULT)
    update(page, "base", RESULT)
    middle, last = (replace(RESULT, mhz=mhz, seconds=60.0) for mhz in (110.0, 120.0))
    update(page, "small", middle)
    update(page, "small", last)
    text = page.read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith(("| small", "| base"))]
    assert rows[:2] == [row("base", RESULT), row("small", last)]
    assert rows[2:] == [path_row("base", RESULT), path_row("small", RESULT), path_row("small", last)]
    assert text.count("# Size and speed") == 1


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_has_a_device(name: str) -> None:
    assert PRESET_DEVICES[name] in DEVICES
