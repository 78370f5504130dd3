"""The page `docs/fpga.md`: one row a preset, written by the command that measured it."""

from __future__ import annotations

import re
from pathlib import Path

from .flow import TARGET_MHZ, Result

_HEAD = f"""\
<!-- Rows are written by `make fpga PRESET=...`: do not edit. -->

# Size and speed on an FPGA

Placed and routed for Lattice ECP5 (speed grade 6, target {TARGET_MHZ} MHz) with Yosys and nextpnr, as a part of a
larger design: buses end inside the chip. Each row was written by `make fpga PRESET=...` when it was measured.

| preset | device | LUT | FF | DSP (18 x 18) | RAM (16 kbit) | Fmax, MHz | minutes |
|---|---|---|---|---|---|---|---|
"""
_ROW = re.compile(r"^\| (\w+) \| LFE5U.*\|$", re.MULTILINE)


def row(preset: str, result: Result) -> str:
    """A preset's line of the table."""
    cells = (preset, result.device, result.lut, result.ff, result.dsp, result.ram, f"{result.mhz:.1f}")
    return "| " + " | ".join(map(str, cells)) + f" | {result.seconds / 60:.0f} |"


def update(path: Path, preset: str, result: Result) -> None:
    """Put the row into the page, in place of the preset's earlier one."""
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    rows = {found[1]: found[0] for found in _ROW.finditer(old)} | {preset: row(preset, result)}
    new = path.with_name(path.name + ".new")
    new.write_text(_HEAD + "\n".join(rows[name] for name in sorted(rows)) + "\n", encoding="utf-8")
    new.replace(path)
