"""The page `docs/fpga.md`: a row a preset and the paths that limit the clock, written by the command that measured."""

from __future__ import annotations

import re
from pathlib import Path

from intloom.hw.fpga.flow import GRADES, TARGET_MHZ
from intloom.hw.fpga.report import KINDS, Resource, Result

_FMAX = " | ".join(f"Fmax, MHz, grade {grade}" for grade in GRADES)
_HEAD = f"""\
<!-- Rows are written by `make fpga PRESET=...`: do not edit. -->

# Size and speed on an FPGA

Placed and routed for Lattice ECP5 (target {TARGET_MHZ} MHz) with Yosys and nextpnr. Of the chips' speed grades
{GRADES[0]} is the slowest and {GRADES[1]} the fastest: each design is placed and routed for the slowest, and
the same layout is timed with the delays of the fastest too. The clock comes from a pin and takes a global net; every
bus ends in registers on the chip, as it would in a larger design: they are counted, a few hundred FF and LUT. Each row
was written by `make fpga PRESET=...` when it was measured. A place counted under LUT holds a look-up table, a bit of a
carry chain, or four bits of distributed RAM. Rows without a clock are of `python -m intloom.hw.fpga PRESET --fit`,
which only counts.

| preset | device | LUT | FF | DSP (18 x 18) | RAM (16 kbit) | {_FMAX} | minutes |
|---|---|---|---|---|---|{"---|" * len(GRADES)}---|
"""
_PATHS = f"""
## The critical path, before and after

The path that limits the clock: for each preset as it was first measured, and as it was measured last, at
grade {GRADES[0]}.

| preset | Fmax, MHz | delay, ns | of it wires | cells | from | to |
|---|---|---|---|---|---|---|
"""
_TEXT = """
## Registers inside the blocks

Multipliers and RAMs stand in a few rows across the chip, far from most logic. Each multiplier of the accelerator has
registers before and behind it that serve nothing else, and each large memory one behind it. Yosys leaves such
registers in the logic, so that a cycle holds the wire to the block, its delay and the wire back; `hw/fpga/blocks.py`
moves them into the blocks' own, 1,269 flip-flops of `small`. Only registers that are always enabled move: which
enable a product's register listens to does not stand in the bitstream. And a signed operand's sign is wired to one
pin, not up to eleven.

## Wires across the chip

A cycle of `base` is wires for the most part, for blocks at fixed sites spread it over the whole chip. So requests, jobs
and events that go to many places end in registers where they are made and begin in registers where they arrive, and
only then meet others. The array's pixel goes to every column: its register stands once for every two columns, and the
flow keeps Yosys from making one of equal registers (attribute `register_copy`). Products made of carry chains are
formed of two bits of the weight each, with a register between these and their sum. Plain data has no reset, and the
engine's reset comes from a register of its own.

## Sites of the blocks

nextpnr's placer lets multipliers and RAMs look for a free site one after the other. In `base`, which takes 155
multipliers of 156 and 180 RAMs of 208, the last ones end up anywhere: nets that lead to blocks made half of all wire,
296,539 of 585,458 columns and rows; without the blocks on them these nets would be 29,972 long. So a design is placed
twice: `hw/fpga/sites.py` finds the best order of the blocks on the sites they took, by the places of everything else
(482,361), then everything else is placed anew around them (414,162). Smaller designs gain little or nothing; then
their blocks stay free.

## Products without DSP blocks

The open tools put one int8 product into an 18 x 18 multiplier. The parameter `lut_products` says how many products of
the array are kept out of them; `hw/fpga/ecp5.v` makes these of carry chains whose look-up tables form two rows of
partial products each. Places of an 8 x 8 array with all 64 products and their sums:

| how | places |
|---|---|
| Yosys' `booth` | 14,615 |
| carry chains as Yosys writes them | 7,650 |
| chains whose ends take no cells of their own | 6,306 |
| chains that begin with bit 0's carry | 6,104 |
| a part of a product in one tile | 6,360 |

The last takes more and is used: nextpnr begins each chain at the first of a tile's eight positions, and a part of a
product took ten, so two tiles. Its outer bits are look-up tables beside the chain, and the array's chains meet 808
tiles instead of 1,064, of 3,036 on the LFE5U-25F.

## Sums that can be loaded

Counters and walkers are `load ? x : q + s`. Left alone, Yosys puts the choice into a look-up table of its own beside
each bit of the chain; `hw/fpga/loadable_adders.py` finds these sums, and `hw/fpga/ecp5.v` makes the choice in
the chain's own look-up tables: 1,075 places of 15,679 less in `nano`, and a look-up table less on each path through a sum. Where
another sum or a comparison chooses, as in a sum modulo a ring, they stay as they are: one chain would wait for the
other.

## Places on a full chip

`small` takes nine of ten places for look-up tables and eight of ten for registers. Its wires, in columns and rows, were
142,000 before each cell had a legal place and 268,277 with it, which nextpnr had not routed in forty minutes; now
208,859.

- The registers of a slice share their enable, those of a logic block two resets, and Yosys makes an enable or a reset
  of whatever it can: 566 sets of them, for 20,225 registers. nextpnr had found no legal places after half an hour. A
  reset of fewer than 12 registers and an enable of fewer than 4 become logic: 396 sets, 23 resets instead of 110, for
  96 look-up tables more, and places within a minute.
- Parts of products in one tile, as above: 245,809.
- Yosys joins two look-up tables to one of five inputs. What chooses between the two comes in where a register that
  does not belong to either has its data from: 1,060 places less for registers. Without such tables: 208,859, and no
  more look-up tables than before.

## The netlist, simulated

Places and clocks are worth what their netlist is worth. A test synthesises `nano`, with a weight memory of 8,192
words, as above, simulates the cells that come out, with models of the chip's own, under the same bench as the
Verilog, and compares outputs and all counters: the netlist runs every program in the same cycles. It found that
ABC's `&mfs`, the last of Yosys' steps to look-up tables, makes one of two things of one and the same input: in one
of them counters that instructions wait for are gone. It would save one look-up table in a hundred, and is left out.
"""
_ROW = re.compile(r"^\| (\w+) \| LFE5U.*\|$", re.MULTILINE)
_PATH_ROW = re.compile(r"^\| (\w+) \| [0-9.]+ \|.*\|$", re.MULTILINE)


def row(preset: str, result: Result) -> str:
    """A preset's line of the table."""
    clocks = [f"{result.mhz[grade]:.1f}" for grade in GRADES]
    return _line(preset, result.device, *_used(result.used), *clocks, f"{result.seconds / 60:.0f}")


def size_row(preset: str, device: str, used: dict[str, Resource]) -> str:
    """The line of a preset that is not routed, be it that it is too large for its device."""
    clock = "not routed" if all(r.used <= r.available for r in used.values()) else "does not fit"
    return _line(preset, device, *_used(used), *[clock] * len(GRADES), "")


def _used(used: dict[str, Resource]) -> list[str]:
    return [str(used[kind]) for kind in KINDS]


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def path_row(preset: str, result: Result) -> str:
    """The preset's line of the table of paths."""
    path, mhz = result.path, result.mhz[GRADES[0]]
    cells = (f"{mhz:.1f}", f"{path.delay:.2f}", f"{path.routing:.2f}", path.cells, f"`{path.start}`")
    return f"| {preset} | " + " | ".join(map(str, cells)) + f" | `{path.end}` |"


def update(path: Path, preset: str, result: Result) -> None:
    """Put the row into the page, in place of the preset's earlier one; of its paths, keep the first."""
    rows, paths = _read(path)
    rows[preset] = row(preset, result)
    paths[preset] = list(dict.fromkeys([*paths.get(preset, [])[:1], path_row(preset, result)]))
    _write(path, rows, paths)


def update_size(path: Path, preset: str, device: str, used: dict[str, Resource]) -> None:
    """Put the row of a preset that is not routed into the page; the row of one that once was routed stays."""
    rows, paths = _read(path)
    if preset not in paths:
        _write(path, rows | {preset: size_row(preset, device, used)}, paths)


def _read(path: Path) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Rows by preset, and the rows of its paths."""
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    paths: dict[str, list[str]] = {}
    for found in _PATH_ROW.finditer(old):
        paths.setdefault(found[1], []).append(found[0])
    return {found[1]: found[0] for found in _ROW.finditer(old)}, paths


def _write(path: Path, rows: dict[str, str], paths: dict[str, list[str]]) -> None:
    lines = [line for name in sorted(paths) for line in paths[name]]
    text = _HEAD + "\n".join(rows[name] for name in sorted(rows)) + "\n" + _PATHS + "\n".join(lines) + "\n" + _TEXT
    new = path.with_name(path.name + ".new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)
