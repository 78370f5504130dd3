"""Measurements of the FPGA flow: a result replaces its preset's record, and the page shows the recorded figures."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from intloom.common.evidence import read
from intloom.hw.fpga.flow import DEVICES, PRESET_DEVICES, TARGET_MHZ
from intloom.hw.fpga.report import CriticalPath, Resource, Result
from intloom.hw.fpga.table import (
    COUNTS,
    DATA,
    PAGE,
    path_row,
    record,
    rendered,
    row,
    size_record,
    update,
    update_size,
)
from intloom.hw.spec.params import PRESETS, changed_name, named_changes

DOCS = Path(__file__).parents[3] / "docs"
USED = {"LUT": Resource(1, 24288), "FF": Resource(2, 24288), "DSP": Resource(3, 28), "RAM": Resource(4, 56)}
PATH = CriticalPath("npu.a", "npu.b", 9.876, 6.0, 5)
RESULT = Result("LFE5U-25F", USED, {6: 81.25, 8: 101.75}, PATH, 130.0)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A copy of the page and its data, without any record."""
    shutil.copytree(DOCS, tmp_path / "docs")
    (tmp_path / "docs" / COUNTS).unlink()
    (tmp_path / "hw" / "fpga").mkdir(parents=True)
    return tmp_path / "docs"


def test_the_page_shows_the_recorded_figures() -> None:
    assert rendered(DOCS) == (DOCS / PAGE).read_text(encoding="utf-8")
    assert f"{TARGET_MHZ} MHz" in (DOCS / PAGE).read_text(encoding="utf-8")


def test_a_row_has_device_sizes_clocks_and_minutes() -> None:
    assert row("small", record(RESULT)) == (
        "| small | LFE5U-25F | 1 of 24288 | 2 of 24288 | 3 of 28 | 4 of 56 | 81.2 | 101.8 | 2 |"
    )


def test_a_path_names_its_ends() -> None:
    assert path_row("small", record(RESULT)["path"]) == "| small | 81.2 | 9.88 | 6.00 | 5 | `npu.a` | `npu.b` |"


def test_a_new_measurement_replaces_one_row(docs: Path) -> None:
    update(docs, "small", RESULT)
    update(docs, "base", RESULT)
    middle, last = (replace(RESULT, mhz={6: mhz, 8: 130.0}, seconds=60.0) for mhz in (110.0, 120.0))
    update(docs, "small", middle)
    update(docs, "small", last)
    lines = (docs / PAGE).read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith(("| small |", "| base |"))]
    first, latest = record(RESULT), record(last)
    assert rows[:2] == [row("base", first), row("small", latest)]
    assert rows[2:] == [path_row("base", first["path"]), path_row("small", latest["path"])]


def test_a_preset_that_is_not_routed_has_a_row_and_no_path(docs: Path) -> None:
    large = USED | {"LUT": Resource(99999, 83640)}
    for name, used in (("large", large), ("base", USED), ("large", large)):
        update_size(docs, name, "LFE5U-85F", used)
    lines = (docs / PAGE).read_text(encoding="utf-8").splitlines()
    rows = {name: [line for line in lines if line.startswith(f"| {name} ")] for name in ("base", "large")}
    assert rows["large"] == [row("large", size_record("LFE5U-85F", large))]
    assert rows["large"][0].startswith("| large | LFE5U-85F | 99999 of 83640 |")
    assert rows["large"][0].endswith("| does not fit | does not fit |  |")
    assert len(rows["base"]) == 1
    assert rows["base"][0].endswith("| not routed | not routed |  |")


def test_a_size_does_not_replace_a_routed_row(docs: Path) -> None:
    update(docs, "small", RESULT)
    before = (docs / PAGE).read_text(encoding="utf-8")
    update_size(docs, "small", "LFE5U-25F", USED)
    assert (docs / PAGE).read_text(encoding="utf-8") == before


def test_a_design_that_no_longer_fits_loses_its_clock(docs: Path) -> None:
    update(docs, "small", RESULT)
    update_size(docs, "small", "LFE5U-25F", USED | {"DSP": Resource(29, 28)})
    assert "mhz" not in read(docs / DATA)["small"].values
    assert "| does not fit | does not fit |" in (docs / PAGE).read_text(encoding="utf-8")


def test_a_preset_with_changes_has_its_own_row(docs: Path) -> None:
    name = changed_name("base", ("vector_norm=false", "lut_products=20"))
    update(docs, name, RESULT)
    assert named_changes(name) == ("base", {"vector_norm": False, "lut_products": 20})
    assert row(name, record(RESULT)) in (docs / PAGE).read_text(encoding="utf-8").splitlines()
    assert read(docs / DATA)[name].command == 'make fpga PRESET=base SET="vector_norm=false lut_products=20"'


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_has_a_device(name: str) -> None:
    assert PRESET_DEVICES[name] in DEVICES
