"""Renders a run's record as one self-contained HTML page."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from intloom.common.errors import EncodingError, FileFormatError
from intloom.exploration.device import clock_of
from intloom.files import check_output, read_bytes, write_text
from intloom.hw.spec.formats import memory_words
from intloom.hw.spec.isa import Kind, LoadTarget, assemble
from intloom.report.limits import limiting_cause
from intloom.report.template import embedded, fill

RECORD = "run.json"
TIMELINE = "timeline.json"
PAGE = "report.html"
_LAYER_KEYS = (
    "index", "name", "op", "origin", "macs", "vector_macs", "cycles", "mac_use", "busy", "stalls",
    "dram_bytes", "predicted_cycles", "instructions", "compared_bytes", "mismatches", "compared_in",
)  # fmt: skip
_LINKS = (
    ("trace.json", "Perfetto trace"),
    ("layers.csv", "layers as CSV"),
    ("trace.csv", "instructions as CSV"),
    (RECORD, "record as JSON"),
)


@dataclass(frozen=True)
class _Tile:
    """One figure at the top of the page."""

    label: str
    value: str
    unit: str
    note: str


def write_report(folder: Path, target: Path | None = None) -> Path:
    """Write the page for the run in `folder` to `target` or to `folder/report.html`; return its path.

    Raises
    ------
    FileFormatError
        The folder holds no run record, or an altered one.
    """
    page = folder / PAGE if target is None else target
    record, timeline = load_record(folder / RECORD), load_record(folder / TIMELINE)
    check_output(page, folder / RECORD, folder / TIMELINE)
    try:
        text = render(record, timeline, _present(folder, page))
    except (LookupError, TypeError, ValueError, ArithmeticError, EncodingError) as error:
        # `intloom run` wrote these files, so a missing key means that they were edited.
        raise FileFormatError(
            f"{folder} must hold {RECORD} and {TIMELINE} as written by intloom run, but they were altered "
            f"({type(error).__name__}: {error}); run the program again"
        ) from error
    write_text(page, text)
    return page


def render(record: dict[str, Any], timeline: dict[str, Any], links: list[dict[str, str]]) -> str:
    """The HTML text of the page."""
    _check_layers(record["layers"])
    return fill(
        "page.html.j2",
        run=record,
        divergence=record.get("first_divergence"),
        tiles=_tiles(record),
        limit=limiting_cause(record),
        comparison=_comparison(record),
        totals=_totals(record["checks"]),
        cycles=f"{record['cycles'] or 0:,}",
        files=links,
        chains=[c for c in record["chains"] if len(c["layers"]) > 1],
        single=_single(record["chains"]),
        clock=clock_of(record["params"]["rows"] * record["params"]["cols"]),
        script="report.js",
        data=embedded(
            {
                **record,
                **timeline,
                "layers": _with_traffic(record["layers"], timeline["timeline"], record["params"]["rows"]),
            }
        ),
    )


def _single(chains: list[dict[str, Any]]) -> dict[str, int]:
    """Totals of the layers that run by themselves."""
    alone = [c for c in chains if len(c["layers"]) == 1]
    return {
        "layers": len(alone),
        "dram_bytes": sum(c["dram_bytes"] for c in alone),
        "least_dram_bytes": sum(c["least_dram_bytes"] for c in alone),
    }


def load_record(path: Path) -> dict[str, Any]:
    """A JSON object that `intloom run` wrote."""
    if not path.is_file():
        raise FileFormatError(f"{path.parent} must be a folder that intloom run -o wrote, but has no {path.name}")
    try:
        value = json.loads(read_bytes(path, "run record"), parse_constant=_refuse_constant)
    except ValueError as error:
        raise FileFormatError(
            f"{path} must be JSON as written by intloom run, but is not ({error}); run the program again"
        ) from None
    if not isinstance(value, dict):
        raise FileFormatError(f"{path} must hold one JSON object as written by intloom run; run the program again")
    return value


def _refuse_constant(name: str) -> None:
    """Reject NaN and Infinity, which are not JSON and which JSON.parse of the page rejects."""
    raise ValueError(f"{name} is not a JSON number")


def _check_layers(layers: list[dict[str, Any]]) -> None:
    """Check that every layer has all keys that the page's script reads."""
    for layer in layers:
        if missing := [key for key in _LAYER_KEYS if key not in layer]:
            raise KeyError(f"a layer has no key {missing[0]}")


def _present(folder: Path, page: Path) -> list[dict[str, str]]:
    """Links to the files in the page's folder."""
    if folder.resolve() != page.parent.resolve():
        return []
    return [{"href": name, "label": label} for name, label in _LINKS if (folder / name).exists()]


def _comparison(record: dict[str, Any]) -> dict[str, Any]:
    compared = record["compared_bytes"]
    ok = None if not compared else record["mismatches"] == 0
    return {"ok": ok, "compared": _bytes(compared), "mismatches": f"{record['mismatches']:,}"}


def _totals(checks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Totals of the comparisons with each reference."""
    lines = []
    for against in dict.fromkeys(c["against"] for c in checks):
        chosen = [c for c in checks if c["against"] == against]
        differ = sum(c["mismatches"] for c in chosen)
        lines.append(
            {
                "against": against,
                "tensors": len(chosen),
                "bytes": f"{sum(c['bytes'] for c in chosen):,}",
                "differ": f"{differ:,} differ" if differ else "",
            }
        )
    return lines


def _with_traffic(layers: list[dict[str, Any]], timeline: list[list[Any]], word_bytes: int) -> list[dict[str, Any]]:
    """The layers with the bytes that their loads and stores move, split into weights, tensors read, tensors written."""
    moved = [dict.fromkeys(("weights", "read", "written"), 0) for _ in layers]
    for _, layer, _, _, _, text in timeline:
        if not 0 <= layer < len(layers) or not text.startswith((Kind.LOAD.name, Kind.STORE.name)):
            continue
        move = assemble(text)
        inward = "weights" if move.kind is Kind.LOAD and move["target"] == LoadTarget.WEIGHT else "read"
        flow = inward if move.kind is Kind.LOAD else "written"
        moved[layer][flow] += memory_words(move) * word_bytes
    return [{**layer, "traffic": traffic} for layer, traffic in zip(layers, moved, strict=True)]


def _tiles(record: dict[str, Any]) -> list[_Tile]:
    tiles = []
    cycles, peak = record["cycles"], record["params"]["rows"] * record["params"]["cols"]
    if cycles:
        ideal = record["macs"] / peak
        tiles.append(_Tile("cycles", *_scaled(cycles), f"ideal {' '.join(_scaled(ideal))}"))
        tiles.append(
            _Tile("array utilization", f"{100 * record['mac_use']:.1f}", "%", f"{peak} multipliers, all cycles counted")
        )
    else:
        note = "predicted by the compiler; --backend rtl counts them"
        tiles.append(_Tile("cycles", *_scaled(record["predicted_cycles"]), note))
    note = f"{len(record['layers'])} layers"
    if record["vector_macs"]:
        note += f"; {' '.join(_scaled(record['vector_macs'], 'MAC'))} of it on the vector unit"
    tiles.append(_Tile("work", *_scaled(record["macs"] + record["vector_macs"], "MAC"), note))
    if record["dram_bytes"]:
        value, unit = _bytes(record["dram_bytes"]).split()
        tiles.append(_Tile("memory traffic", value, unit, "weights, tensors and instructions"))
    if record["sim_hz"]:
        note = f"{record['wall_s']:.1f} s" + (f", build {record['build_s']:.0f} s" if record["build_s"] >= 0.5 else "")
        tiles.append(_Tile("simulation speed", *_scaled(record["sim_hz"], "Hz"), note))
    return tiles


def _scaled(value: float, unit: str = "") -> tuple[str, str]:
    for factor, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:.2f}", f"{prefix}{unit}" if not unit or len(unit) <= 3 else f"{prefix} {unit}"
    return f"{value:.0f}", unit


def _bytes(count: int) -> str:
    for factor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= factor:
            return f"{count / factor:.2f} {unit}"
    return f"{count} B"
