"""The page of an exploration, and its table in a notebook."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from intloom.files import write_text
from intloom.hw.area.components import KINDS
from intloom.notebook import html_table
from intloom.report.front import front_svg
from intloom.report.template import embedded, fill

if TYPE_CHECKING:
    from intloom.exploration.explore import Exploration

_TEMPLATE = "exploration.html.j2"


def write_exploration(record: dict[str, Any], folder: Path) -> Path:
    """Write explore.html for the record of an exploration."""
    page = folder / "explore.html"
    write_text(page, fill(_TEMPLATE, "exploration.js", e=record, kinds=_kinds(record), data=embedded(_axes(record))))
    return page


def _kinds(record: dict[str, Any]) -> list[str]:
    """Kinds of cells in the order of the table."""
    there = {key for row in record["points"] for key in row}
    return [kind for kind in dict.fromkeys(k for kinds in KINDS.values() for k in kinds) if kind in there]


def _axes(record: dict[str, Any]) -> dict[str, Any]:
    """The values that the plot can show, with their labels."""
    kinds = [[kind, kind if kind == "gates" else f"{kind} cells"] for kind in _kinds(record)]
    axes = [["fps", "frames/s"], *kinds, ["memory_kib", "KiB of memory"], ["dram_bytes", "bytes of DRAM per frame"]]
    return {"points": record["points"], "axes": [*axes, ["energy_uj", "µJ per frame, estimated"]]}


def table_html(done: Exploration) -> str:
    """The front as a picture and a table for a notebook."""
    kinds = KINDS[done.budget.device.family]
    names = ["configuration", ">frames/s", *(f">{kind}" for kind in kinds), ">KiB", ">MB/frame", ">µJ"]
    rows = []
    for row in done.rows()[: len(done.front)]:
        cells = (f"{row.get(kind, 0):,}" for kind in kinds)
        values = [f"{row['fps']:.2f}", *cells, str(row["memory_kib"]), f"{row['dram_bytes'] / 1e6:.2f}"]
        rows.append([escape(row["name"]), *values, f"{row['energy_uj']:,.0f}"])
    picture = ""
    if done.front:
        points = [(point.cells[kinds[0]], point.fps) for point in done.front]
        picture = front_svg({"front": points}, f"{kinds[0]}, estimated", "frames/s, forecast")
    return picture + html_table(names, rows)
