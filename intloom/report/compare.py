"""Comparison of two runs: totals and layers side by side."""

from pathlib import Path
from typing import Any

from intloom.common.errors import FileFormatError
from intloom.files import write_text
from intloom.report.page import RECORD, load_record
from intloom.report.template import fill

_TOTALS = {
    "cycles": "cycles",
    "predicted_cycles": "predicted cycles",
    "mac_use": "array utilization",
    "dram_bytes": "memory traffic, bytes",
    "mismatches": "bytes that differ",
}
"""Keys of the record, and their names on the page."""
_SETUP = ("name", "source", "backend", "hardware", "fingerprint", "params", "conditions", "command")
"""What a run was made with."""
_LAYER = ("cycles", "predicted_cycles", "dram_bytes", "mismatches")


def compare_runs(a: Path, b: Path) -> dict[str, Any]:
    """Totals and layers of the runs in two folders; layers are matched by name.

    Raises
    ------
    FileFormatError
        A folder holds no run record, or an altered one.
    """
    first, second = load_record(a / RECORD), load_record(b / RECORD)
    try:
        layers = [{layer["name"]: layer for layer in run["layers"]} for run in (first, second)]
        rows = [
            {"name": name, **{key: _pair(layers, name, key) for key in (*_LAYER, "op")}}
            for name in dict.fromkeys([*layers[0], *layers[1]])
        ]
        heads = [{k: run[k] for k in ("name", "hardware", "backend", "first_divergence")} for run in (first, second)]
        totals = {key: [first[key], second[key]] for key in _TOTALS}
    except (KeyError, TypeError) as error:
        raise FileFormatError(f"{a} and {b} must hold {RECORD} as written by intloom run, but lack {error}") from None
    for head, folder in zip(heads, (a, b), strict=True):
        head["folder"] = str(folder)
    return {
        "a": heads[0],
        "b": heads[1],
        "setup": _setup(first, second),
        "totals": totals,
        "layers": sorted(rows, key=_gain),
    }


def _setup(a: dict[str, Any], b: dict[str, Any]) -> list[dict[str, Any]]:
    """What differs in the set-up of two runs; what a record of an older version lacks is None."""
    flat = []
    for run in (a, b):
        values = {key: run.get(key) for key in _SETUP}
        groups = [values.pop(group) or {} for group in ("params", "conditions")]
        flat.append(values | groups[0] | {f"memory {key}": value for key, value in groups[1].items()})
    names = dict.fromkeys([*flat[0], *flat[1]])
    return [
        {"what": name.replace("_", " "), "a": flat[0].get(name), "b": flat[1].get(name)}
        for name in names
        if flat[0].get(name) != flat[1].get(name)
    ]


def _pair(layers: list[dict[str, Any]], name: str, key: str) -> list[Any]:
    return [side[name][key] if name in side else None for side in layers]


def cycles_of(row: dict[str, Any]) -> list[int | None]:
    """Cycles of a layer in both runs, predicted ones if one of the runs counted none."""
    counted: list[int | None] = row["cycles"]
    return counted if any(c is not None for c in counted) else row["predicted_cycles"]


def _gain(row: dict[str, Any]) -> int:
    """Layers that take longer first, the worst one at the top; improvements last."""
    a, b = cycles_of(row)
    return (a or 0) - (b or 0)


def write_compare(compared: dict[str, Any], page: Path) -> None:
    """Write the page of two compared runs."""
    most = max([1, *(c or 0 for row in compared["layers"] for c in cycles_of(row))])
    divergences = [
        {"run": side.upper(), **compared[side]["first_divergence"]}
        for side in ("a", "b")
        if compared[side]["first_divergence"]
    ]
    text = fill(
        "compare.html.j2",
        a=compared["a"],
        b=compared["b"],
        totals=totals(compared),
        divergences=divergences,
        setup=[{key: _text(value) for key, value in row.items()} for row in compared["setup"]],
        layers=[_layer(row, most) for row in compared["layers"]],
    )
    write_text(page, text)


def _text(value: Any) -> str:
    return "-" if value is None or value == "" else str(value)


def totals(compared: dict[str, Any]) -> list[dict[str, str]]:
    """The totals that both runs have, as text."""
    return [_total(key, a, b) for key, (a, b) in compared["totals"].items() if a is not None and b is not None]


def _total(key: str, a: float, b: float) -> dict[str, str]:
    label = _TOTALS[key]
    if key == "mac_use":
        points = "equal" if a == b else f"{100 * (b - a):+.1f} points"
        return {"label": label, "change": points, "a": f"{100 * a:.1f} %", "b": f"{100 * b:.1f} %"}
    return {"label": label, "change": change(a, b), "a": f"{a:,}", "b": f"{b:,}"}


def change(a: float | None, b: float | None) -> str:
    """The relative change as text; empty where one is missing."""
    if a is None or b is None:
        return ""
    if a == b:
        return "equal"
    return f"{100 * (b - a) / a:+.1f} %" if a else f"{b - a:+,}"


def _layer(row: dict[str, Any], most: int) -> dict[str, Any]:
    cycles = cycles_of(row)
    shown: dict[str, Any] = {"name": row["name"], "op": next(o for o in row["op"] if o), "change": change(*cycles)}
    for side, index in (("a", 0), ("b", 1)):
        shown[f"cycles_{side}"] = _count(cycles[index])
        shown[f"width_{side}"] = round(100 * (cycles[index] or 0) / most, 1)
        shown[f"traffic_{side}"] = _count(row["dram_bytes"][index])
        shown[f"differ_{side}"] = _count(row["mismatches"][index])
    return shown


def _count(value: int | None) -> str:
    return f"{value:,}" if value else ""
