"""The area model against designs that it is not fitted to, and its own consistency."""

import json
import time
from pathlib import Path

import pytest

from intloom.cli.entry import run as main
from intloom.common import evidence
from intloom.exploration.device import ROUTED
from intloom.hw.area.__main__ import CHECKS, SAMPLES, drawn, error_rows
from intloom.hw.area.components import CELLS, KINDS
from intloom.hw.area.measure import words
from intloom.hw.area.model import MEASURED, area_of, cells_of, memory_blocks, total
from intloom.hw.spec.params import changed, from_dict, preset

ROWS = evidence.read(MEASURED)
WHOLE = {
    "base": {"LUT": 74_864, "FF": 62_801, "DSP": 155, "RAM": 192},
    "small": {"LUT": 22_804, "FF": 20_577, "DSP": 28, "RAM": 54},
    "nano": {"LUT": 16_057, "FF": 15_050, "DSP": 28, "RAM": 28},
}
"""Whole designs after packing for the ECP5, as in docs/fpga.md."""


@pytest.mark.parametrize("name", WHOLE)
def test_whole_designs_on_the_ecp5_are_within_8_percent(name):
    estimated = total(area_of(preset(name).replace(vector_norm=False, constant_check=False), "ecp5"))
    for kind, packed in WHOLE[name].items():
        assert estimated[kind] == pytest.approx(packed, rel=0.08), kind


@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.parametrize("family", KINDS)
def test_words_that_are_not_fitted_are_within_8_percent(name, family):
    values = ROWS[name].values
    params = from_dict(values["parameters"])
    measured = total({component: cells_of(counts, family) for component, counts in values["words"].items()})
    measured["RAM"] = measured.get("RAM", 0) + sum(memory_blocks(params, family).values())
    estimated = total(area_of(params, family))
    for kind in KINDS[family]:
        assert estimated[kind] == pytest.approx(measured[kind], rel=0.08), kind


def test_the_manual_has_the_errors_of_whole_designs():
    """They were measured on one revision, and the random designs are still the same."""
    whole = {name: row for name, row in ROWS.items() if name.startswith("whole ")}
    assert len({row.digest for row in whole.values()}) == 1
    for name, row in whole.items():
        _, family, number = name.split()
        assert from_dict(row.values["parameters"]) == drawn(int(number), family)
    page = Path("docs/choosing.md").read_text(encoding="utf-8")
    assert [
        line for line in page.splitlines() if line.startswith(tuple(f"| {family} |" for family in CELLS))
    ] == error_rows()


def test_recorded_designs_are_those_of_the_command():
    for name, (base, changes) in SAMPLES.items():
        assert from_dict(ROWS[f"design {name}"].values["parameters"]) == changed(preset(base), changes)
    assert {f"design {name}" for name in SAMPLES} == {name for name in ROWS if name.startswith("design ")}


@pytest.mark.slow
def test_words_are_counted_again_as_recorded():
    counted = words(preset("nano"))
    for component, kept in ROWS["design nano"].values["words"].items():
        for word, number in kept.items():
            now = sum(module.get(word, 0) for module in counted[component].values())
            assert now == pytest.approx(number, rel=0.1, abs=20), (component, word)


def test_more_lanes_and_columns_take_more_cells():
    for family in KINDS:
        if f"mapping {family}" in ROWS:
            small, large = (total(area_of(changed(preset("nano"), {"cols": n}), family)) for n in (4, 64))
            assert all(small[kind] <= large[kind] for kind in KINDS[family])


def test_the_command_prints_components_in_a_second(capsys):
    started = time.process_time()
    assert main(["area", "--device", "XC7Z020", "--set", "rows=8", "--json"]) == 0
    assert time.process_time() - started < 2
    shown = json.loads(capsys.readouterr().out)
    assert shown["total"] == pytest.approx(total(area_of(changed(preset("base"), {"rows": 8}), "xc7")))
    assert main(["area", "--set", "rows=8"]) == 0
    assert "total" in capsys.readouterr().out


def test_routed_designs_of_the_page_are_those_of_this_file():
    for name in ("small", "nano"):
        used = evidence.read(ROUTED)[name].values["used"]
        assert {kind: used[kind][0] for kind in used} == WHOLE[name]
