"""`docs/data/asic.json`, and the tables of `docs/asic.md` that are derived from it."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from intloom.common import evidence
from intloom.common.atomic_write import write_text
from intloom.common.markdown import filled, line, table
from intloom.hw.asic.report import Estimate
from intloom.hw.npu import TOP_NAME

PAGE = "asic.md"
DATA = "data/asic.json"
_FLOW = "hw/asic/flow.py"
_SOURCES = ("hw/npu.py", _FLOW)
"""What an estimate depends on, with what they import."""
_LEAST_SHARE = 0.02
_DEEPEST = 4
"""Levels of the hierarchy with a row, the top level included."""

Record = dict[str, Any]


def record(result: Estimate) -> Record:
    """What the data file keeps: areas of components below `_DEEPEST` or smaller than `_LEAST_SHARE` are left out."""
    kept = {
        name: round(area)
        for name, area in result.areas.items()
        if area >= _LEAST_SHARE * result.area and name.count(".") < _DEEPEST and f"{name}.".startswith(f"{TOP_NAME}.")
    }
    return asdict(result) | {"areas": dict(sorted(kept.items())), "area": round(result.area)}


def size_row(preset: str, of: Mapping[str, Any]) -> str:
    """The preset's line of the table of sizes."""
    period = of["path"]["period_ns"]
    figures = (f"{of[name]:,}" for name in ("cells", "flip_flops", "register_file_bits", "gates"))
    return line(preset, *figures, f"{of['area'] / 1e6:.2f}", f"{period:.1f}", f"{1000 / period:.0f}")


def path_row(preset: str, path: Mapping[str, Any]) -> str:
    """The preset's line of the table of longest paths."""
    return line(preset, path["cells"], f"`{path['start']}`", f"`{path['end']}`")


def _lint_row(preset: str, lint: Mapping[str, Any]) -> str:
    macros = ", ".join(f"{count} of {size}" for size, count in lint["memory_macros"].items())
    return line(
        preset, lint["clocks"], lint["latches"], lint["falling_edges"], lint["asynchronous_resets"], macros or "none"
    )


def _area_rows(preset: str, of: Mapping[str, Any]) -> Iterable[str]:
    for name, area in of["areas"].items():
        yield line(preset, f"`{name}`", f"{area / 1e6:.3f}", f"{100 * area / of['area']:.1f}")


_SIZES = ("cells", "flip-flops", "bits of register files", "NAND gates", "area, mm²", "period, ns", "MHz")
_HEADS = {
    "sizes": ("preset", *_SIZES),
    "paths": ("preset", "cells of the longest path", "from", "to"),
    "lint": ("preset", "clocks", "latches", "falling edges", "asynchronous resets", "memory macros, words x bits"),
    "areas": ("preset", "component", "area, mm²", "%"),
}


def rendered(docs: Path) -> str:
    """The page with the tables of the recorded figures; its prose is kept."""
    records = read(docs)
    tables = {
        "sizes": [size_row(name, of) for name, of in sorted(records.items())],
        "paths": [path_row(name, of["path"]) for name, of in sorted(records.items())],
        "lint": [_lint_row(name, of["lint"]) for name, of in sorted(records.items())],
        "areas": [row for name, of in sorted(records.items()) for row in _area_rows(name, of)],
    }
    text = (docs / PAGE).read_text(encoding="utf-8")
    for name, lines in tables.items():
        text = filled(text, name, table(_HEADS[name], lines))
    return text


def read(docs: Path) -> dict[str, Record]:
    """The records of the data file by preset."""
    return {name: row.values for name, row in evidence.read(docs / DATA).items()}


def content(root: Path, verilog: str) -> str:
    """What an estimate follows from."""
    return evidence.flow_content(verilog, root, _FLOW)


def update(docs: Path, preset: str, new: Record, of: str) -> None:
    """Record an estimate of content `of` and rewrite the page's tables."""
    row = evidence.measured(new, f"make asic PRESET={preset}", docs.parent, _SOURCES, of)
    evidence.record(docs / DATA, preset, row)
    write_text(docs / PAGE, rendered(docs))
