"""HTML page that draws the memory use of a program over its instructions, without external resources."""

from collections.abc import Sequence
from html import escape
from math import ceil
from pathlib import Path
from typing import Any

from markupsafe import Markup

from intloom.compiler.program.footprint import Memory
from intloom.compiler.program.memory_map import Extent, memory_map, memory_size, peak_words
from intloom.compiler.program.program import Program
from intloom.files import write_text
from intloom.flow.record import hardware_name
from intloom.report.template import fill

_WIDTH, _HEIGHT = 1200, 320
_TITLES = {Memory.SCRATCH: "Scratchpad", Memory.WEIGHT: "Weight memory", Memory.DRAM: "DRAM"}
_GOLDEN_ANGLE = 137.508
"""Degrees of hue from one layer to the next: gives nearby layers different hues."""


def write_memory_page(programs: Sequence[Program], path: Path) -> None:
    """Write the page of a model's programs to `path`."""
    write_text(path, memory_page(programs))


def memory_page(programs: Sequence[Program]) -> str:
    """The page: three memories per program, with addresses on the vertical and instructions on the horizontal axis."""
    return fill(
        "memory.html.j2",
        name=programs[0].name,
        hardware=hardware_name(programs[0]),
        programs=[{"count": len(p.instructions), "memories": _memories(p)} for p in programs],
        width=_WIDTH,
        height=_HEIGHT,
    )


def _memories(program: Program) -> list[dict[str, Any]]:
    """Title, size and drawing of each memory."""
    extents, kib = memory_map(program), program.params.word_bytes / 1024
    memories = []
    for memory, title in _TITLES.items():
        inside = [e for e in extents if e.memory is memory]
        size = memory_size(program, memory)
        shapes = "".join(_shape(program, e, len(program.instructions), size) for e in inside)
        figures = {"size": f"{size * kib:,.0f}", "peak": f"{peak_words(program, memory) * kib:,.0f}"}
        memories.append({"title": title, "shapes": Markup(shapes), **figures})  # names in it are escaped
    return memories


def _shape(program: Program, e: Extent, count: int, size: int) -> str:
    """The rectangle of one extent, at least 0.4 pixels wide and high."""
    x, width = _WIDTH * e.first / count, max(0.4, _WIDTH * (e.last - e.first) / count)
    height = max(0.4, _HEIGHT * (e.stop - e.start) / size)
    y = _HEIGHT - _HEIGHT * e.start / size - height
    fixed = e.memory is Memory.DRAM and e.last - e.first == count
    layer = program.provenance[e.first].layer
    look = ' class="fixed"' if fixed else f' style="--hue:{ceil(layer * _GOLDEN_ANGLE) % 360}"'
    title = f"{e.label}: words {e.start:,} to {e.stop:,}, instructions {e.first:,} to {e.last:,}"
    position = f'x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}"'
    return f"<rect {position}{look}><title>{escape(title)}</title></rect>"
