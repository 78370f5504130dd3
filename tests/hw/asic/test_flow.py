"""The estimate in standard cells, on one component of the accelerator, and the page of the recorded estimates."""

import re
from collections import Counter
from pathlib import Path

import pytest

from intloom.common.errors import EnvironmentFault
from intloom.hw.asic.flow import LIBRARY, estimate
from intloom.hw.asic.netlist import BUFFER, FAN_OUT, add_buffers, read_module, structural_verilog
from intloom.hw.asic.report import cell_areas, read_path
from intloom.hw.asic.table import PAGE, read, record, rendered
from intloom.hw.memory.macro import RAM_VERILOG, MemoryMacros
from intloom.hw.memory.weights import WeightMemory
from intloom.hw.spec.params import preset
from intloom.hw.verilog import translated

DOCS = Path(__file__).parents[3] / "docs"
NEEDS = pytest.mark.needs("qflow-tech-osu018 opensta")
SHIFT = """
module npu(input clk, input rst, input [3:0] a, output [3:0] q);
  wire [3:0] middle;
  stage first(clk, a, middle);
  stage second(clk, middle, q);
endmodule
module stage(input clk, input [3:0] a, output reg [3:0] q);
  always @(posedge clk) q <= ~a;
endmodule
"""


@NEEDS
def test_areas_add_up_over_the_hierarchy(tmp_path: Path) -> None:
    result = estimate(SHIFT, tmp_path, print)
    areas = cell_areas(LIBRARY)
    assert (result.cells, result.flip_flops) == (16, 8)
    assert result.areas["stage"] == 4 * (areas["DFFPOSX1"] + areas["INVX1"])
    assert result.area == result.areas["npu"] == 2 * result.areas["stage"]
    assert result.gates == round(result.area / areas["NAND2X1"])
    assert (result.path.start[:-3], result.path.end[:-3], result.path.cells) == ("first.q", "q", 2)
    assert 0 < result.path.period_ns < 1


@NEEDS
def test_memories_are_black_boxes(tmp_path: Path) -> None:
    component = WeightMemory(preset("nano"))
    verilog = translated(component, "npu", platform=MemoryMacros(arrays=True)) + RAM_VERILOG
    result = estimate(verilog, tmp_path, print)
    assert result.lint.memory_macros == {"4096 x 32": 1}
    assert (result.lint.clocks, result.lint.latches, result.lint.asynchronous_resets) == (1, 0, 0)
    assert 200 < result.flip_flops < 300


@NEEDS
def test_lint_counts_what_must_not_be_there(tmp_path: Path) -> None:
    bad = """
    module npu(input clk, input rst, input slow, input a, output reg p, output reg q, output reg r, output reg s);
      always @(negedge clk) p <= a;
      always @(posedge clk or posedge rst) if (rst) q <= 0; else q <= p;
      always @* if (slow) r = a;
      always @(posedge slow) s <= q;
    endmodule
    """
    lint = estimate(bad, tmp_path, print).lint
    assert (lint.clocks, lint.latches, lint.falling_edges, lint.asynchronous_resets) == (2, 1, 1, 1)


def test_a_missing_library_names_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("intloom.hw.asic.flow.LIBRARY", tmp_path / "none")
    with pytest.raises(EnvironmentFault, match="apt-get install qflow-tech-osu018 opensta"):
        estimate("", tmp_path, print)


def test_the_path_of_a_report() -> None:
    log = r"""
Startpoint: engine.mac.sequencer.state[2]\\DFFPOSX1
            (rising edge-triggered flip-flop clocked by clk)
Endpoint: engine.$signal$5[0]\\DFFPOSX1 (rising edge-triggered flip-flop clocked by clk)
   0.1 0.2 0.3 1.0 ^ engine.mac.sequencer.state[2]\\DFFPOSX1/Q (DFFPOSX1)
   0.1 0.2 0.3 2.0 ^ _1_/Y (INVX1)
              2.498   data arrival time
             -0.173   19.827   library setup time
             -2.498   data arrival time
"""
    path = read_path(log)
    assert (path.start, path.end) == ("engine.mac.sequencer.state[2]", "engine.$signal$5[0]")
    assert (path.cells, path.period_ns) == (2, 2.67)


def test_the_page_has_the_recorded_estimates() -> None:
    assert (DOCS / PAGE).read_text(encoding="utf-8") == rendered(DOCS)
    assert "nano" in read(DOCS)


@NEEDS
def test_components_are_recorded_by_their_path(tmp_path: Path) -> None:
    kept = record(estimate(SHIFT, tmp_path, print))
    assert kept["areas"] == {"npu": kept["area"]}


@NEEDS
def test_nets_with_many_loads_get_buffers(tmp_path: Path) -> None:
    wide = """
    module npu(input clk, input rst, input a, input [299:0] b, output reg [299:0] q);
      reg select;
      always @(posedge clk) begin select <= a; q <= select ? b : q; end
    endmodule
    """
    result = estimate(wide, tmp_path, print)
    module = read_module(tmp_path / "cells.json", "npu")
    loads = Counter(
        bit
        for cell in module["cells"].values()
        for pin, bits in cell["connections"].items()
        if pin not in ("CLK", "Y", "Q")
        for bit in bits
    )
    assert max(loads.values()) > 250
    cells = len(module["cells"])
    assert result.cells - cells == add_buffers(module) >= 300 // FAN_OUT
    verilog = structural_verilog(module, "npu")
    assert verilog.count(BUFFER) == result.cells - cells
    uses = Counter(re.findall(r"\.[A-EIN-S]\w*\(([^)]*)\)", verilog))
    assert max(count for net, count in uses.items() if net != "clk") <= FAN_OUT + 1
    assert result.path.period_ns < 3
