"""The page of measured rows: each preset's row is replaced, the others stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from hw.fpga.flow import DEVICES, PRESET_DEVICES, Resource, Result
from hw.fpga.table import row, update
from hw.spec.params import PRESETS

RESULT = Result("LFE5U-25F", Resource(1, 24288), Resource(2, 24288), Resource(3, 28), Resource(4, 56), 101.25, 130.0)


def test_a_row_says_everything():
    assert row("small", RESULT) == ("| small | LFE5U-25F | 1 of 24288 | 2 of 24288 | 3 of 28 | 4 of 56 | 101.2 | 2 |")


def test_measuring_again_replaces_only_that_row(tmp_path: Path):
    page = tmp_path / "fpga.md"
    update(page, "small", RESULT)
    update(page, "base", RESULT)
    faster = Result(RESULT.device, RESULT.lut, RESULT.ff, RESULT.dsp, RESULT.ram, 120.0, 60.0)
    update(page, "small", faster)
    text = page.read_text(encoding="utf-8")
    assert text.splitlines()[-2:] == [row("base", RESULT), row("small", faster)]
    assert text.count("# Size and speed") == 1


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_has_a_device(name: str):
    assert PRESET_DEVICES[name] in DEVICES
