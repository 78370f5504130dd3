"""`make fpga BOARD=...`: firmware, LiteX system and bitstream of a board."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from intloom.common.errors import IntloomError, UsageError
from intloom.common.extras import require_extra
from intloom.compiler.program.program import Program
from intloom.compiler.schedule import compile_graph
from intloom.hw.fpga.board.bitstream import content, make_bitstream
from intloom.hw.fpga.board.boards import BOARDS, Board, board_named
from intloom.hw.fpga.flow import Flow
from intloom.hw.fpga.table import PAGE, bitstream_row, update_bitstream
from intloom.hw.spec.c_text import header
from intloom.hw.spec.params import HardwareParams, preset
from intloom.sim.golden import run_graph
from intloom.sim.regress.graphs import make_graph
from intloom.soc.firmware import BOARD_HEADER, Check, build_board_firmware

if TYPE_CHECKING:
    from intloom.hw.fpga.board.system import BoardSystem

DOCS = Path("docs")
_SELF_TEST = {"inputs": 3, "outputs": 20, "height": 9, "width": 10, "kernel": 3, "stride": 1, "pad": 1}
"""Sizes of the convolution that the firmware runs: more channels than the arrays of all presets have columns."""

_TEST_WORDS = 1 << 14
"""Words of the SDRAM that the firmware writes and compares."""


def self_test(params: HardwareParams) -> tuple[Program, Check]:
    """The program that the firmware runs, and its check."""
    graph, inputs = make_graph("conv", 1, _SELF_TEST)
    return compile_graph(graph, params), Check(inputs, run_graph(graph, inputs, match=params.match))


def make_system(board: Board, device: str, preset_name: str, folder: Path, test_words: int = _TEST_WORDS) -> list[Path]:
    """Write a board's system with its firmware into a folder, for `make_bitstream`; returns the Verilog sources.

    The firmware writes and compares `test_words` words of the SDRAM.

    Raises
    ------
    EnvironmentFault
        LiteX, LiteDRAM, the core's package, the cross compiler or its C library is missing.
    """
    require_extra("board", "litex", "migen", "litedram", "pythondata_cpu_vexriscv")
    from intloom.hw.fpga.board.system import BoardSystem, addresses, write_verilog

    folder.mkdir(parents=True, exist_ok=True)
    system = BoardSystem(board, device, preset_name, folder / "rtl")
    program, check = self_test(preset(preset_name))
    symbols = {name: value for name, value in addresses(system).items() if name.startswith(("ROM_", "SRAM_"))}
    firmware = build_board_firmware((program,), check, folder / "firmware", board_header(system, test_words), symbols)
    return write_verilog(system, firmware, folder)


def board_header(system: BoardSystem, test_words: int = _TEST_WORDS) -> str:
    """The header with the system's addresses and the register writes that start its SDRAM."""
    from intloom.hw.fpga.board.system import addresses, sdram_start

    writes = [f"    {{0x{w.address:08x}u, 0x{w.value:04x}u, {w.wait}u}}" for w in sdram_start(system)]
    body = [
        *(f"#define {name} 0x{value:08x}u" for name, value in addresses(system).items()),
        f"#define TEST_WORDS {test_words}u",
        "",
        "/* Address, value, and turns of a loop to wait after the write. */",
        "#define SDRAM_WRITES \\",
        ", \\\n".join(writes),
        "",
    ]
    return header(BOARD_HEADER, "The board's addresses.", body, ["<stdint.h>"], written_by="intloom.soc.board")


def main(arguments: list[str] | None = None, *, say: Callable[[str], None] | None = None) -> int:
    """Make the bitstream of the board on the command line; returns the process's exit code."""
    parser = argparse.ArgumentParser(prog="python -m intloom.soc.board", description=__doc__)
    parser.add_argument("board", nargs="?", default=next(iter(BOARDS)), help=f"one of {', '.join(BOARDS)}")
    parser.add_argument("--device", help="member of the ECP5 family on the board; each board has a default")
    parser.add_argument("--preset", default="nano", help="preset of the hardware")
    parser.add_argument("-o", "--output", type=Path, default=Path("out/board"))
    parser.add_argument("--seed", type=int, default=1, help="seed of the placer")
    chosen = parser.parse_args(arguments)
    logging.disable(logging.INFO)  # LiteX logs each step and a tree of its modules
    try:
        board = board_named(chosen.board)
        device = chosen.device or board.devices[0]
        if device not in board.devices:
            raise UsageError(f"{board.name} has no {device!r} that holds the system; it has {', '.join(board.devices)}")
        tell = say or (lambda step: print(step, flush=True))
        flow = Flow((chosen.output / board.name).resolve(), tell, chosen.seed)
        flow.tell(f"writing the system into {flow.folder}")
        sources = make_system(board, device, chosen.preset, flow.folder)
        of = content(DOCS.parent, sources, flow.folder)
        result = make_bitstream(preset(chosen.preset), board, device, sources, flow)
    except IntloomError as error:
        print(f"error: {error}", file=sys.stderr)
        return int(error.exit_code)
    flow.tell(bitstream_row(board.name, chosen.preset, result))
    flow.tell(f"bitstream: {result.file}, {result.file.stat().st_size:,} bytes")
    if (DOCS / PAGE).exists():
        update_bitstream(DOCS, board.name, chosen.preset, result, of)
    return 0


if __name__ == "__main__":
    sys.exit(main())
