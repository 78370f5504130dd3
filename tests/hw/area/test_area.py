"""The area model against designs that it is not fitted to, and its own consistency."""

import json
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from amaranth.hdl import Elaboratable, Fragment, Shape
from amaranth.lib.memory import Memory as AmaranthMemory

from intloom.cli.entry import run as main
from intloom.common import evidence
from intloom.hw.area.__main__ import CHECKS, SAMPLES, drawn, is_current, rendered, steps
from intloom.hw.area.components import FAMILY_FIELDS, KINDS
from intloom.hw.area.memories import luts_of, memories
from intloom.hw.area.model import MEASURED, area_of, cells_of, counted, port_words, total
from intloom.hw.area.words import words
from intloom.hw.mac.array.product import OneModule
from intloom.hw.npu import Npu
from intloom.hw.spec.params import changed, from_dict, preset
from intloom.sim.rtl.verilog import verilog_of

ROWS = evidence.read(MEASURED)
WHOLE = [name for name in ROWS if name.startswith("whole ")]


def test_rows_are_of_todays_verilog():
    """Else `make area-model` measures again what differs, and whole designs that were never counted."""
    today = steps()
    assert ROWS.keys() <= today.keys()
    assert all(name.startswith("whole ") for name in today.keys() - ROWS.keys())
    assert [name for name, row in ROWS.items() if not is_current(row, today[name])] == []


def test_a_row_of_other_verilog_or_of_another_tool_is_not_current():
    step, row = steps()["design nano"], ROWS["design nano"]
    older = replace(row, digest="of older sources")
    assert is_current(older, step)
    assert not is_current(replace(older, content="of other Verilog"), step)
    assert not is_current(replace(older, values=row.values | {"tool": "Yosys 0.69"}), step)
    assert not is_current(None, step)


@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.parametrize("family", KINDS)
def test_words_that_are_not_fitted_are_within_8_percent(name, family):
    values = ROWS[name].values
    params = from_dict(values["parameters"])
    measured = total({name: cells_of(counts, family, name) for name, counts in counted(values).items()})
    if "LUT" in measured:
        measured["LUT"] += sum(luts_of(its, family) for its in memories(params).values())
    estimated = total(area_of(params, family))
    for kind in measured:
        assert estimated[kind] == pytest.approx(measured[kind], rel=0.08), kind


@pytest.mark.parametrize(
    ("name", "bits", "luts", "registers"),
    [("base", 64, 84, 68), ("base", 32, 122, 102), ("large", 64, 230, 198), ("nano", 128, 198, 44)],
)
def test_a_port_of_another_width_has_the_area_of_its_converter(name, bits, luts, registers):
    """Yosys 0.70 for the ECP5 makes so much of the converter alone."""
    params = preset(name)
    # Bursts of as many words: they are the size of the queue of the program.
    beats = params.axi_burst * max(1, params.axi_data_bits // bits)
    converted = changed(params, {"axi_data_bits": bits, "axi_burst": beats})
    as_wide, other = (total(area_of(p, "ecp5")) for p in (params, converted))
    assert port_words(params) == {}
    assert other["LUT"] - as_wide["LUT"] == pytest.approx(luts, rel=0.3)
    assert other["FF"] - as_wide["FF"] == pytest.approx(registers, rel=0.1)


class _Noted(OneModule):
    """Elaboration platform that notes memories of at least 64 words."""

    def __init__(self) -> None:
        super().__init__(arrays=False)
        self.shapes = Counter[tuple[int, int, int]]()

    def get_memory(self, memory: AmaranthMemory) -> Elaboratable:
        (write,) = memory.write_ports
        if memory.depth >= 64:
            self.shapes[memory.depth, Shape.cast(memory.shape).width, len(write.en)] += 1
        return memory.elaborate(None)


def _elaborate(part: Elaboratable, platform: OneModule) -> None:
    for inner, *_ in Fragment.get(part, platform).subfragments:
        _elaborate(inner, platform)


@pytest.mark.parametrize("params", [preset("nano"), preset("small"), *(drawn(n, "ecp5") for n in (1, 2, 5))])
def test_memories_are_those_of_the_design(params):
    sums, *_ = memories(params)["accumulators"]
    assert sums.reads == 2 - params.single_ported_accumulators
    noted, listed = _Noted(), Counter[tuple[int, int, int]]()
    _elaborate(Npu(params), noted)
    for component, its in memories(params).items():
        # Chords are cases of a switch, which Yosys turns into memories.
        for memory in its[:1] if component == "normalization" else its:
            if memory.words >= 64:
                listed[memory.words, memory.bits, memory.enables] += memory.count
    assert noted.shapes == listed


@pytest.mark.parametrize("name", WHOLE)
def test_estimates_of_whole_designs_are_within_8_percent_and_multipliers_and_ram_are_exact(name):
    family, values = name.split()[1], ROWS[name].values
    params = from_dict(values["parameters"])
    estimated = total(area_of(params, family))
    assert values["cells"].keys() == set(KINDS[family])
    for kind, cells in values["cells"].items():
        if kind in {"DSP", "RAM"}:
            assert round(estimated[kind], 6) == cells, kind
        assert estimated[kind] == pytest.approx(cells, rel=0.08), kind


def test_the_manual_has_the_errors_of_whole_designs():
    for name in WHOLE:
        _, family, number = name.split()
        assert from_dict(ROWS[name].values["parameters"]) == drawn(int(number), family)
    page = Path("docs/choosing.md").read_text(encoding="utf-8")
    assert rendered(page) == page


def test_recorded_designs_are_those_of_the_command():
    for name, (base, changes) in SAMPLES.items():
        assert from_dict(ROWS[f"design {name}"].values["parameters"]) == changed(preset(base), changes)


@pytest.mark.slow
def test_words_are_counted_again_as_recorded(monkeypatch):
    monkeypatch.setattr("intloom.hw.area.words.generate_verilog", verilog_of)
    counted = words(preset("nano"))
    for component, kept in ROWS["design nano"].values["words"].items():
        for word, number in kept.items():
            assert sum(module.get(word, 0) for module in counted[component].values()) == number, (component, word)


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
    suited = changed(preset("base"), {"rows": 8, **FAMILY_FIELDS["xc7"]})
    assert shown["total"] == pytest.approx(total(area_of(suited, "xc7"))) and shown["parameters"] == suited.to_dict()
    assert main(["area", "--set", "rows=8"]) == 0
    assert "total" in capsys.readouterr().out


def test_fields_of_a_family_follow_the_device_unless_they_are_given(tmp_path, capsys):
    (file := tmp_path / "own.toml").write_text('preset = "base"\nlut_products = 304\n')
    for options in (["--set", "lut_products=304"], ["--config", str(file)]):
        assert main(["area", "--device", "XC7Z020", *options, "--json"]) == 0
        given = json.loads(capsys.readouterr().out)["parameters"]
        assert (given["lut_products"], given["multiplier_bits"]) == (304, 25)
    assert main(["area", "--device", "XC7Z020"]) == 0
    assert "base, lut_products = 0, multiplier_bits = 25, estimated" in capsys.readouterr().err
