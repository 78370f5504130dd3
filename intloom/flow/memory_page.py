"""HTML page that draws the memory use of a program over its instructions, without external resources."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import ceil
from pathlib import Path

from intloom.compiler.program.footprint import Memory
from intloom.compiler.program.memory_map import Extent, memory_map, memory_size, peak_of
from intloom.compiler.program.program import Program
from intloom.files import write_text

_WIDTH, _HEIGHT = 1200, 320
_TITLES = {Memory.SCRATCH: "Scratchpad", Memory.WEIGHT: "Weight memory", Memory.DRAM: "DRAM"}
_GOLDEN_ANGLE = 137.508
"""Degrees of hue from one layer to the next: gives nearby layers different hues."""
_STYLE = """
:root { color-scheme: light dark; --ground: #fff; --ink: #1c2024; --quiet: #667; --frame: #b8bec6; --light: 62%; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #14171a; --ink: #e8eaed; --quiet: #9aa3ad; --frame: #444c55; --light: 48%; }
}
body { background: var(--ground); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto;
  max-width: 1240px; padding: 0 1rem; }
h1 { font-size: 1.4rem; margin-bottom: 0; }
h2 { font-size: 1.05rem; margin: 1.6rem 0 .3rem; }
p { color: var(--quiet); margin: .2rem 0; }
svg { border: 1px solid var(--frame); display: block; height: auto; width: 100%; }
rect { fill: hsl(var(--hue) 65% var(--light)); }
rect.fixed { fill: var(--frame); }
rect:hover { stroke: var(--ink); stroke-width: 1.5; vector-effect: non-scaling-stroke; }
.ends { color: var(--quiet); display: flex; font-size: .85rem; justify-content: space-between; }
"""


def write_memory_page(programs: Sequence[Program], path: Path) -> None:
    """Write the page of a model's programs to `path`."""
    write_text(path, memory_page(programs))


def memory_page(programs: Sequence[Program]) -> str:
    """The page: three memories per program, with addresses on the vertical and instructions on the horizontal axis."""
    name = escape(programs[0].name)
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Memory of {name}</title>'
    parts = [f"<!doctype html><html lang=en><head>{head}<style>{_STYLE}</style></head><body><h1>Memory of {name}</h1>"]
    for number, program in enumerate(programs, start=1):
        region = f"Region {number} of {len(programs)}: " if len(programs) > 1 else ""
        parts.append(
            f"<p>{region}{len(program.instructions):,} instructions. A block is the result of one instruction, from "
            "its write to its last read. Each layer has a color; constants are gray. Hover over it for details.</p>"
        )
        extents = memory_map(program)
        parts += [_panel(program, memory, [e for e in extents if e.memory is memory]) for memory in _TITLES]
    return "\n".join([*parts, "</body></html>\n"])


def _panel(program: Program, memory: Memory, extents: Sequence[Extent]) -> str:
    size, word = memory_size(program, memory), program.params.word_bytes
    peak = peak_of(extents)
    count = len(program.instructions)
    shapes = "".join(_shape(program, e, count, size) for e in extents)
    title = _TITLES[memory]
    return (
        f"<h2>{title}</h2><p>{size * word / 1024:,.0f} KiB, at most {peak * word / 1024:,.0f} KiB in use at once</p>"
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none" role="img" aria-label="{title} over '
        f'instructions">{shapes}</svg><div class="ends"><span>instruction 0</span><span>{count:,}</span></div>'
    )


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
