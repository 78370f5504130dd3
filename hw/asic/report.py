"""What the tools report about a design in standard cells."""

import json
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from intloom.hw.asic.netlist import BUFFER
from intloom.hw.memory.macro import RAM_MODULE, REGISTER_FILE_WORDS

_GATE = "NAND2X1"
"""The cell whose area is one gate."""
_CELL_AREA = re.compile(r"^\s*cell \((\w+)\) \{.*?\barea : ([\d.]+);", re.MULTILINE | re.DOTALL)
_LATCHES = ("$dlatch", "$adlatch", "$dlatchsr", "$sr")
_ASYNCHRONOUS = ("$adff", "$adffe", "$aldff", "$aldffe", "$dffsr", "$dffsre")


@dataclass(frozen=True)
class Lint:
    """What a design must have none of, and its clocks; counted before mapping, in cells of any width."""

    clocks: int
    latches: int
    falling_edges: int
    asynchronous_resets: int
    memory_macros: dict[str, int]
    """Number of memory macros by words and bits."""


@dataclass(frozen=True)
class LongestPath:
    """The longest path between registers: its ends, the clock period that it needs in ns, and its cells."""

    start: str
    end: str
    period_ns: float
    cells: int


@dataclass(frozen=True)
class Estimate:
    """A design in cells of the library, without memory macros, placement and wires."""

    lint: Lint
    cells: int
    flip_flops: int
    area: float
    """In square micrometers."""
    register_file_bits: int
    """Bits of the macros that replace registers."""
    gates: int
    """The area in NAND gates with two inputs, and one for each of these bits."""
    areas: dict[str, float]
    """Area of each component by its path, with all components in it."""
    path: LongestPath


def read_lint(words: Path, top: str) -> Lint:
    """Count latches, clocks and resets in a flat netlist of words."""
    cells: dict[str, Any] = json.loads(words.read_text(encoding="utf-8"))["modules"][top]["cells"]
    kinds: Counter[str] = Counter()
    macros: Counter[str] = Counter()
    clocks, falling = set(), 0
    for cell in cells.values():
        kind, parameters = cell["type"], cell["parameters"]
        kinds[kind] += 1
        clocks |= {tuple(cell["connections"][port]) for port in ("CLK", "clk") if port in cell["connections"]}
        clocked = int(parameters.get("CLK_ENABLE", "1"), 2)
        falling += bool(clocked) and int(parameters.get("CLK_POLARITY", "1"), 2) == 0
        if kind == RAM_MODULE:
            macros[f"{int(parameters['WORDS'], 2)} x {int(parameters['WIDTH'], 2)}"] += 1
    # Memory ports have a clock enable; without it the clock pin is not used.
    clocks = {clock for clock in clocks if set(clock) - {"x", "0", "1"}}
    latches, resets = (sum(kinds[kind] for kind in group) for group in (_LATCHES, _ASYNCHRONOUS))
    return Lint(len(clocks), latches, falling, resets, dict(sorted(macros.items())))


def register_file_bits(lint: Lint) -> int:
    """Bits of macros that replace registers."""
    sizes = ((*map(int, size.split(" x ")), count) for size, count in lint.memory_macros.items())
    return sum(words * bits * count for words, bits, count in sizes if words <= REGISTER_FILE_WORDS)


@cache
def cell_areas(library: Path) -> dict[str, float]:
    """Area of each cell of the library in square micrometers."""
    return {name: float(area) for name, area in _CELL_AREA.findall(library.read_text(encoding="utf-8"))}


def read_areas(file: Path, library: Path, top: str, buffers: int) -> tuple[int, int, float, int, dict[str, float]]:
    """Cells, flip-flops, area, gates, and area by component, from the statistics of Yosys; the top has the buffers."""
    modules = {
        name.removeprefix("\\"): m for name, m in json.loads(file.read_text(encoding="utf-8"))["modules"].items()
    }
    known = cell_areas(library)

    def all_cells(module: str) -> Counter[str]:
        total: Counter[str] = Counter()
        for kind, count in modules[module]["num_cells_by_type"].items():
            name = kind.removeprefix("\\")
            inner = all_cells(name) if name in modules else Counter({name: 1})
            total += Counter({k: n * count for k, n in inner.items()})
        return total

    def area_of(cells: Counter[str]) -> float:
        return sum(known.get(kind, 0.0) * count for kind, count in cells.items())

    modules[top]["num_cells_by_type"][BUFFER] = modules[top]["num_cells_by_type"].get(BUFFER, 0) + buffers
    cells = all_cells(top)
    areas = {name: area_of(all_cells(name)) for name in modules}
    flops = sum(count for kind, count in cells.items() if kind.startswith("DFF"))
    used = sum(count for kind, count in cells.items() if kind != RAM_MODULE)
    return used, flops, areas[top], round(areas[top] / known[_GATE]), areas


def read_path(log: str) -> LongestPath:
    """The longest path of a timing report."""

    def end(kind: str) -> str:
        match = re.search(rf"^{kind}: (\S+)", log, re.MULTILINE)
        # Yosys names a cell after its wire, a backslash and the cell's kind; OpenSTA doubles the backslash.
        return match[1].partition("\\\\")[0].replace("\\", "") if match else ""

    arrival = float(re.findall(r"(-?[\d.]+) +data arrival time", log)[0])
    setup = float((re.findall(r"(-?[\d.]+) +[\d.-]+ +library setup time", log) or ["0"])[0])
    cells = len(re.findall(r"/Y \(|/Q \(", log))
    return LongestPath(end("Startpoint"), end("Endpoint"), round(arrival - setup, 2), cells)
