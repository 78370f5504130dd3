"""Marks figures of FPGA and cell flows, bitstreams and long runs as of today's sources if their Verilog is the same.

A change of the sources that leaves the Verilog as it is needs no new layout and no new run: `make unchanged`.
"""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from intloom.common import evidence
from intloom.hw.asic import table as asic
from intloom.hw.fpga import table as fpga
from intloom.hw.fpga.board import bitstream
from intloom.hw.fpga.board.boards import board_named
from intloom.hw.fpga.counts import verilog_for
from intloom.hw.spec.params import changed, named_changes, preset
from intloom.hw.verilog import generate_verilog_with_macros
from intloom.sim.rtl.verilog import verilog_of
from intloom.soc.board import make_system
from tools import long_runs

ROOT = Path(__file__).parents[1]
_DOCS = ROOT / "docs"


def figures() -> Iterator[tuple[Path, str, str]]:
    """File and name of each figure with a content, and the content that it would have today."""
    for name in evidence.read(_DOCS / fpga.DATA):
        start, changes = named_changes(name)
        yield _DOCS / fpga.DATA, name, fpga.content(ROOT, verilog_of(changed(preset(start), changes)))
    for name in evidence.read(_DOCS / fpga.COUNTS):
        of, family = name.rsplit(" ", 1)
        start, changes = named_changes(of)
        verilog = verilog_for(changed(preset(start), changes), family, changes)
        yield _DOCS / fpga.COUNTS, name, fpga.count_content(ROOT, evidence.content_hash([verilog.encode()]))
    for name, row in evidence.read(_DOCS / fpga.BITSTREAMS).items():
        with TemporaryDirectory() as folder:
            device = row.values["device"].removeprefix("LFE5U-")
            sources = make_system(board_named(name), device, row.values["preset"], Path(folder))
            yield _DOCS / fpga.BITSTREAMS, name, bitstream.content(ROOT, sources, Path(folder))
    for name in evidence.read(_DOCS / asic.DATA):
        yield _DOCS / asic.DATA, name, asic.content(ROOT, generate_verilog_with_macros(preset(name)))
    # Only for runs that have one: it takes the Verilog of all random hardware.
    if runs := [name for name, row in evidence.read(long_runs.RUNS).items() if row.content]:
        of_runs = long_runs.content()
        yield from ((long_runs.RUNS, name, of_runs) for name in runs)


def main() -> None:
    """Mark them, and say which."""
    for path, name, content in figures():
        if evidence.keep(path, name, content, ROOT):
            print(f"{path.name}: {name} is of today's Verilog", flush=True)


if __name__ == "__main__":
    main()
