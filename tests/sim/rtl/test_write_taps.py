"""Diagnosis finds every write port in the Verilog of every shape, or says which one it misses."""

import re

import pytest

from intloom.common.errors import FileFormatError
from intloom.hw.spec.params import preset
from intloom.sim.rtl.verilog import verilog_of
from intloom.sim.rtl.write_log import Writer
from intloom.sim.rtl.write_taps import find_taps


@pytest.mark.parametrize("name", ["nano", pytest.param("base", marks=pytest.mark.slow)])
def test_every_writer_has_its_tap_and_every_wire_is_in_the_verilog(name):
    verilog = verilog_of(preset(name))
    taps = find_taps(verilog)
    assert [tap.writer for tap in taps] == [writer for writer in Writer if writer is not Writer.STORE]
    for tap in taps:
        for wire in re.findall(r"dut\.(\S+)", f"{tap.taken} {tap.address} {tap.data} {tap.mask}"):
            module, _, signal = wire.rpartition(".")
            body = verilog.split(f"module \\npu.{module} (", 1)[1].split("endmodule", 1)[0]
            assert re.search(rf"^\s*wire .*{re.escape(signal)}\s*;", body, re.MULTILINE), wire


def test_a_memory_without_a_way_back_never_borrows_another_ports_ready():
    weights = find_taps(verilog_of(preset("nano")))[Writer.LOAD_WEIGHT]
    assert "ready" not in weights.taken


def test_foreign_verilog_is_refused_by_the_name_of_what_it_lacks():
    with pytest.raises(FileFormatError, match=r"npu\.engine\.scratch"):
        find_taps("module npu(clk);\nendmodule\n")
    text = "module \\npu.engine.scratch (clk);\nendmodule\nmodule \\npu.engine (clk);\nendmodule\n"
    with pytest.raises(FileFormatError, match="load__valid"):
        find_taps(text)
