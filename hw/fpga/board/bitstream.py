"""From a board's system to its bitstream: Yosys, nextpnr with the board's pins, ecppack."""

import json
import re
import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from intloom.common import evidence
from intloom.hw.fpga.board.boards import Board
from intloom.hw.fpga.flow import DEVICES, Flow, map_to_cells
from intloom.hw.fpga.report import Bitstream, Clock, check_fit, check_timing, read_utilization, resources_of
from intloom.hw.fpga.tools import nextpnr, tool
from intloom.hw.spec.params import HardwareParams

CHIP = "chip"
"""Name of the top module, and of the pin file."""
_CONFIG = f"{CHIP}.config"
_REPORT = "report.json"
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
"""In LiteX's Verilog they have a date and a tree of modules in any order."""
_LIBRARY = ("cells_bb_ecp5.v", "cells_sim_ecp5.v")
"""Yosys' declarations of the cells that LiteX instantiates: PLL, pins, registers at pins."""


def content(root: Path, sources: Sequence[Path], folder: Path) -> str:
    """What a bitstream follows from: the system in `folder`, without comments, and the flow's code."""
    pins_and_contents = sorted(file for file in folder.iterdir() if file.suffix in (".lpf", ".init"))
    texts = (file.read_text(encoding="utf-8") for file in (*sources, *pins_and_contents))
    system = "".join(_COMMENT.sub("", text) for text in texts)
    flow = evidence.code_hash(root, ("hw/fpga/board/bitstream.py",), "intloom.hw.fpga")
    return evidence.content_hash([system.encode(), flow.encode()])


def make_bitstream(params: HardwareParams, board: Board, device: str, sources: Sequence[Path], flow: Flow) -> Bitstream:
    """Synthesize the Verilog sources, place and route with `chip.lpf` of the flow's folder, and pack.

    Raises
    ------
    TooLargeError
        The system does not fit the device.
    TimingError
        A clock is slower than the board's.
    CapacityError
        A tool failed, for example because a pin has no site; the message ends with the log's last lines.
    EnvironmentFault
        A tool is missing.
    """
    start = time.monotonic()
    for source in sources:
        if source.parent.resolve() != flow.folder.resolve():
            shutil.copy(source, flow.folder)
    library = [f"read_verilog -lib +/lattice/{name}" for name in _LIBRARY]
    map_to_cells(params, flow, CHIP, [*library, *(f"read_verilog {source.name}" for source in sources)])
    result = route_and_pack(board, device, flow)
    return replace(result, seconds=time.monotonic() - start)


def route_and_pack(board: Board, device: str, flow: Flow) -> Bitstream:
    """Arrange and route the cells of `chip.json` with the pins of `chip.lpf`; raises as `make_bitstream`."""
    start = time.monotonic()
    chip, mhz = DEVICES[device], board.clock / 1e6
    bitstream = flow.folder / f"{board.name}.bit"
    bitstream.unlink(missing_ok=True)  # a failed run must not leave an earlier one
    command = [
        nextpnr(), chip.option, "--package", board.package, "--speed", str(board.grade),
        "--json", f"{CHIP}.json", "--lpf", f"{CHIP}.lpf", "--freq", str(mhz), "--timing-allow-fail",
        "--seed", str(flow.seed),
    ]  # fmt: skip
    flow.tell(f"packing cells for {chip.name}")
    flow.run([*command, "--pack-only"], "pack.log")
    check_fit(read_utilization(flow.folder / "pack.log"), chip.name)
    flow.tell(f"placing and routing, log in {flow.folder / 'nextpnr.log'}")
    flow.run([*command, "--textcfg", _CONFIG, "--report", _REPORT], "nextpnr.log")
    report = json.loads((flow.folder / _REPORT).read_text(encoding="utf-8"))
    # A clock whose frequency nextpnr could not derive from the pin's must not pass with a lower one.
    clocks = [Clock(name, of["achieved"], max(mhz, of["constraint"])) for name, of in report["fmax"].items()]
    check_timing(clocks)
    flow.tell(f"packing the bitstream {bitstream}")
    flow.run([tool("yowasp-ecppack"), "--compress", _CONFIG, bitstream.name], "ecppack.log")
    return Bitstream(bitstream, chip.name, resources_of(report), tuple(clocks), time.monotonic() - start)
