"""Measurements of the FPGA flow, and the tables of `docs/fpga.md` that are derived from them."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from intloom.common import evidence
from intloom.common.atomic_write import write_text
from intloom.common.markdown import filled, line, table
from intloom.hw.fpga.counts import Count
from intloom.hw.fpga.flow import GRADES
from intloom.hw.fpga.report import KINDS, Bitstream, Resource, Result

PAGE = "fpga.md"
DATA = "../hw/fpga/measured.json"
"""In the package, since reports show the measured clock; like the other names relative to the folder of the page."""
BITSTREAMS = "data/bitstreams.json"
COUNTS = "data/fpga-counts.json"
_FLOW, _COUNTS_FLOW = "hw/fpga/flow.py", "hw/fpga/counts.py"
_SOURCES = ("hw/npu.py", _FLOW)
"""What a layout depends on, with what they import."""

_USED = ("device", "LUT", "FF", "DSP (18 x 18)", "RAM (16 kbit)")
_HEADS = {
    "sizes": ("preset", *_USED, *(f"Fmax, MHz, grade {grade}" for grade in GRADES), "minutes"),
    "paths": ("preset", "Fmax, MHz", "delay, ns", "routing, ns", "cells", "from", "to"),
    "counts": ("preset", "device", "LUT", "FF", "DSP", "RAM", "hash of the Verilog"),
    "bitstreams": ("board", "preset", *_USED, "clocks, MHz", "minutes"),
}
"""Tables of the page by the name in their markers."""

Record = dict[str, Any]


def record(result: Result) -> Record:
    """What the data file keeps of a routed design."""
    path, mhz = result.path, {str(grade): round(mhz, 1) for grade, mhz in result.mhz.items()}
    rounded = {"delay": round(path.delay, 2), "routing": round(path.routing, 2)}
    return size_record(result.device, result.used) | {
        "mhz": mhz,
        "minutes": round(result.seconds / 60),
        "path": {"mhz": mhz[str(GRADES[0])]} | asdict(path) | rounded,
    }


def size_record(device: str, used: Mapping[str, Resource]) -> Record:
    """What the data file keeps of a design that was packed and not routed."""
    return {"device": device, "used": {kind: [used[kind].used, used[kind].available] for kind in KINDS}}


def row(preset: str, of: Mapping[str, Any]) -> str:
    """The preset's line of the table of sizes."""
    used = [Resource(*of["used"][kind]) for kind in KINDS]
    if "mhz" in of:
        clocks = [f"{of['mhz'][str(grade)]:.1f}" for grade in GRADES]
    else:
        clocks = ["not routed" if _fits(used) else "does not fit"] * len(GRADES)
    return line(preset, of["device"], *used, *clocks, of.get("minutes", ""))


def path_row(preset: str, path: Mapping[str, Any]) -> str:
    """A line of the table of critical paths."""
    figures = (f"{path['mhz']:.1f}", f"{path['delay']:.2f}", f"{path['routing']:.2f}", path["cells"])
    return line(preset, *figures, f"`{path['start']}`", f"`{path['end']}`")


def bitstream_record(preset: str, of: Bitstream) -> Record:
    """What the data file keeps of a board's bitstream."""
    clocks = [[round(clock.mhz, 1), clock.required] for clock in of.clocks]
    return size_record(of.device, of.used) | {"preset": preset, "clocks": clocks, "minutes": round(of.seconds / 60)}


def bitstream_row(board: str, preset: str, of: Bitstream) -> str:
    """The board's line of the table of bitstreams."""
    return _bitstream_row(board, bitstream_record(preset, of))


def _bitstream_row(board: str, of: Mapping[str, Any]) -> str:
    used = [Resource(*of["used"][kind]) for kind in KINDS]
    clocks = ", ".join(f"{reached:.1f} of {required:.1f}" for reached, required in of["clocks"])
    return line(board, of["preset"], of["device"], *used, clocks, of["minutes"])


def count_row(preset: str, of: Count) -> str:
    """The preset's line of the table of counts."""
    return line(preset, of.device, *map(of.cell, KINDS), f"`{of.verilog}`")


def content(root: Path, verilog: str) -> str:
    """What the figures of a layout follow from."""
    return evidence.flow_content(verilog, root, _FLOW)


def count_content(root: Path, verilog: str) -> str:
    """What counts of cells follow from; `verilog` is its hash."""
    return evidence.flow_content(verilog, root, _COUNTS_FLOW)


def update(docs: Path, name: str, result: Result, of: str = "") -> None:
    """Record a routed design of content `of` and rewrite the page's tables."""
    _write(docs, name, record(result), of)


def update_size(docs: Path, name: str, device: str, used: Mapping[str, Resource], of: str = "") -> None:
    """Record a design that was packed only; it replaces a routed result if it no longer fits."""
    if not _fits(used.values()) or "mhz" not in read(docs).get(name, {}):
        _write(docs, name, size_record(device, used), of)


def update_bitstream(docs: Path, board: str, preset: str, of: Bitstream, content: str) -> None:
    """Record a board's bitstream, which follows from `content`, and rewrite the page's tables."""
    sources = (*_SOURCES, "intloom/soc/board.py")
    row = evidence.measured(bitstream_record(preset, of), f"make fpga BOARD={board}", docs.parent, sources, content)
    evidence.record(docs / BITSTREAMS, board, row)
    write_text(docs / PAGE, rendered(docs))


def update_count(docs: Path, name: str, family: str, of: Count) -> None:
    """Record what Yosys counted in a design and rewrite the page's tables."""
    kept = count_content(docs.parent, of.verilog)
    row = evidence.measured(asdict(of), _command(name, family), docs.parent, ("hw/npu.py", _COUNTS_FLOW), kept)
    evidence.record(docs / COUNTS, f"{name} {family}", row)
    write_text(docs / PAGE, rendered(docs))


def read(docs: Path) -> dict[str, Record]:
    """The records of the data file by the name of the design."""
    return {name: row.values for name, row in evidence.read(docs / DATA).items()}


def rendered(docs: Path) -> str:
    """The page with the tables of the recorded figures; its prose is kept."""
    records, bitstreams = read(docs), {name: row.values for name, row in evidence.read(docs / BITSTREAMS).items()}
    counts = ((name.rsplit(" ", 1)[0], Count(**row.values)) for name, row in evidence.read(docs / COUNTS).items())
    tables = {
        "sizes": [row(name, records[name]) for name in sorted(records)],
        "paths": [path_row(name, records[name]["path"]) for name in sorted(records) if "path" in records[name]],
        "counts": [count_row(name, of) for name, of in counts],
        "bitstreams": [_bitstream_row(name, bitstreams[name]) for name in sorted(bitstreams)],
    }
    text = (docs / PAGE).read_text(encoding="utf-8")
    for name, lines in tables.items():
        text = filled(text, name, table(_HEADS[name], lines))
    return text


def _fits(used: Iterable[Resource]) -> bool:
    return all(resource.used <= resource.available for resource in used)


def _command(name: str, family: str = "") -> str:
    """The command that measures a design of such a name."""
    preset, *changes = name.replace(" = ", "=").split(", ")
    count, fields = f" COUNT={family}" if family else "", f' SET="{" ".join(changes)}"' if changes else ""
    return f"make fpga PRESET={preset}{count}{fields}"


def _write(docs: Path, name: str, values: Record, of: str) -> None:
    """Write data and page; each file is replaced as a whole."""
    row = evidence.measured(values, _command(name), docs.parent, _SOURCES, of)
    evidence.record(docs / DATA, name, row)
    write_text(docs / PAGE, rendered(docs))
