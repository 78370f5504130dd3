"""The page of measured rows: each preset's row is replaced, the others stay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from intloom.hw.fpga.flow import DEVICES, PRESET_DEVICES
from intloom.hw.fpga.report import CriticalPath, Resource, Result
from intloom.hw.fpga.table import path_row, row, size_row, update, update_size
from intloom.hw.spec.params import PRESETS

USED = {"LUT": Resource(1, 24288), "FF": Resource(2, 24288), "DSP": Resource(3, 28), "RAM": Resource(4, 56)}
PATH = CriticalPath("npu.a", "npu.b", 9.876, 6.0, 5)
RESULT = Result("LFE5U-25F", USED, {6: 81.25, 8: 101.75}, PATH, 130.0)


def test_a_row_says_everything() -> None:
    assert row("small", RESULT) == (
        "| small | LFE5U-25F | 1 of 24288 | 2 of 24288 | 3 of 28 | 4 of 56 | 81.2 | 101.8 | 2 |"
    )


def test_a_path_names_its_ends() -> None:
    assert path_row("small", RESULT) == "| small | 81.2 | 9.88 | 6.00 | 5 | `npu.a` | `npu.b` |"


def test_measuring_again_replaces_only_that_row(tmp_path: Path) -> None:
    page = tmp_path / "fpga.md"
    update(page, "small", RESULT)
    update(page, "base", RESULT)
    middle, last = (replace(RESULT, mhz={6: mhz, 8: 130.0}, seconds=60.0) for mhz in (110.0, 120.0))
    update(page, "small", middle)
    update(page, "small", last)
    text = page.read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith(("| small", "| base"))]
    assert rows[:2] == [row("base", RESULT), row("small", last)]
    assert rows[2:] == [path_row("base", RESULT), path_row("small", RESULT), path_row("small", last)]
    assert text.count("# Size and speed") == 1


def test_a_preset_that_is_not_routed_has_a_row_and_no_path(tmp_path: Path) -> None:
    page = tmp_path / "fpga.md"
    update(page, "small", RESULT)
    large = USED | {"LUT": Resource(99999, 83640)}
    for name, used in (("large", large), ("base", USED), ("large", large)):
        update_size(page, name, "LFE5U-85F", used)
    lines = page.read_text(encoding="utf-8").splitlines()
    rows = {name: [line for line in lines if line.startswith(f"| {name} ")] for name in ("base", "large")}
    assert rows["large"] == [size_row("large", "LFE5U-85F", large)]
    assert rows["large"][0].startswith("| large | LFE5U-85F | 99999 of 83640 |")
    assert rows["large"][0].endswith("| does not fit | does not fit |  |")
    assert len(rows["base"]) == 1
    assert rows["base"][0].endswith("| not routed | not routed |  |")


def test_a_size_does_not_replace_a_routed_row(tmp_path: Path) -> None:
    page = tmp_path / "fpga.md"
    update(page, "small", RESULT)
    before = page.read_text(encoding="utf-8")
    update_size(page, "small", "LFE5U-25F", USED)
    assert page.read_text(encoding="utf-8") == before


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_has_a_device(name: str) -> None:
    assert PRESET_DEVICES[name] in DEVICES
