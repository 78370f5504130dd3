"""The page `docs/fpga.md`: a row a preset and the paths that limit the clock, written by the command that measured."""

from __future__ import annotations

import re
from pathlib import Path

from .flow import TARGET_MHZ
from .report import KINDS, Result

_HEAD = f"""\
<!-- Rows are written by `make fpga PRESET=...`: do not edit. -->

# Size and speed on an FPGA

Placed and routed for Lattice ECP5 (speed grade 6, target {TARGET_MHZ} MHz) with Yosys and nextpnr. The clock comes
from a pin and takes a global net; every bus ends in registers on the chip, as it would in a larger design: they are
counted, a few hundred FF and LUT. Each row was written by `make fpga PRESET=...` when it was measured. A place counted
under LUT holds a look-up table, a bit of a carry chain, or four bits of distributed RAM.

| preset | device | LUT | FF | DSP (18 x 18) | RAM (16 kbit) | Fmax, MHz | minutes |
|---|---|---|---|---|---|---|---|
"""
_PATHS = """
## The critical path, before and after

The path that limits the clock: for each preset as it was first measured, and as it was measured last.

| preset | Fmax, MHz | delay, ns | of it wires | cells | from | to |
|---|---|---|---|---|---|---|
"""
_PRODUCTS = """
## Products without DSP blocks

The open tools put one int8 product into an 18 x 18 multiplier. The parameter `lut_products` says how many products of
the array are kept out of them; `hw/fpga/ecp5.v` makes these of carry chains whose look-up tables form two rows of
partial products each. Places of an 8 x 8 array with all 64 products and their sums:

| how | places |
|---|---|
| Yosys' `booth` | 14,615 |
| carry chains as Yosys writes them | 7,650 |
| chains whose ends take no cells of their own | 6,306 |
| chains that begin with bit 0's carry | 6,098 |

## Sums that can be loaded

Counters and walkers are `load ? x : q + s`. Left alone, Yosys puts the choice into a look-up table of its own beside
each bit of the chain; `hw/fpga/steps.py` finds these sums, and `hw/fpga/ecp5.v` makes the choice in the chain's own
look-up tables: 928 places of 15,083 less in `nano`, and a look-up table less on each path through a sum.
"""
_ROW = re.compile(r"^\| (\w+) \| LFE5U.*\|$", re.MULTILINE)
_PATH_ROW = re.compile(r"^\| (\w+) \| [0-9.]+ \|.*\|$", re.MULTILINE)


def row(preset: str, result: Result) -> str:
    """A preset's line of the table."""
    cells = (preset, result.device, *(result.used[kind] for kind in KINDS), f"{result.mhz:.1f}")
    return "| " + " | ".join(map(str, cells)) + f" | {result.seconds / 60:.0f} |"


def path_row(preset: str, result: Result) -> str:
    """The preset's line of the table of paths."""
    path = result.path
    cells = (f"{result.mhz:.1f}", f"{path.delay:.2f}", f"{path.routing:.2f}", path.cells, f"`{path.start}`")
    return f"| {preset} | " + " | ".join(map(str, cells)) + f" | `{path.end}` |"


def update(path: Path, preset: str, result: Result) -> None:
    """Put the row into the page, in place of the preset's earlier one; of its paths, keep the first."""
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    rows = {found[1]: found[0] for found in _ROW.finditer(old)} | {preset: row(preset, result)}
    paths: dict[str, list[str]] = {}
    for found in _PATH_ROW.finditer(old):
        paths.setdefault(found[1], []).append(found[0])
    paths[preset] = list(dict.fromkeys([*paths.get(preset, [])[:1], path_row(preset, result)]))
    lines = [line for name in sorted(paths) for line in paths[name]]
    new = path.with_name(path.name + ".new")
    text = _HEAD + "\n".join(rows[name] for name in sorted(rows)) + "\n" + _PATHS + "\n".join(lines) + "\n"
    text += _PRODUCTS
    new.write_text(text, encoding="utf-8")
    new.replace(path)
