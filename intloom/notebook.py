"""HTML tables of programs, graphs and runs for notebooks with light and dark themes."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from intloom.compiler.ir import IntGraph
from intloom.compiler.program.program import Program, array_use

_MOST_ROWS = 200
_GOOD, _BAD = "#1f9d6b", "#b3261e"


def program_html(program: Program) -> str:
    """The hardware of a program, and every layer with its predicted cost."""
    p = program.params
    use = array_use(program.macs, program.predicted_cycles, p)
    head = (
        f"<b>{escape(program.name)}</b>: {len(program.instructions):,} instructions for a {p.rows}x{p.cols} array, "
        f"{program.predicted_cycles:,} cycles predicted, array utilization {100 * use:.1f} %"
    )
    rows = [
        (
            escape(layer.name),
            escape(layer.op),
            _number(layer.macs + layer.vector_macs),
            _number(layer.predicted_cycles),
            _meter(layer.macs, layer.predicted_cycles * p.macs),
            _number(layer.dram_words * p.word_bytes),
        )
        for layer in program.layers
    ]
    return head + html_table(("layer", "kind", ">MACs", ">cycles", "utilization", ">memory bytes"), rows)


def run_html(record: Mapping[str, Any]) -> str:
    """The totals of a run, the result of the comparison, and every layer with its measured cost."""
    equal = "not compared"
    if record["compared_bytes"]:
        count = f"{record['compared_bytes']:,} bytes compared"
        equal = f"<span style='color:{_BAD}'>{record['mismatches']:,} bytes differ</span>, {count}"
        if not record["mismatches"]:
            equal = f"<span style='color:{_GOOD}'>bit-exact</span>, {count}"
    head = f"<b>{escape(record['name'])}</b> on {record['backend']}: {equal}"
    if record["cycles"]:
        head += f"; {record['cycles']:,} cycles, array utilization {100 * record['mac_use']:.1f} %"
    peak = record["params"]["rows"] * record["params"]["cols"]
    rows = [
        (
            escape(layer["name"]),
            escape(layer["op"]),
            _number(layer["cycles"]),
            _number(layer["predicted_cycles"]),
            _meter(layer["macs"], (layer["cycles"] or 0) * peak),
            _comparison(layer),
        )
        for layer in record["layers"]
    ]
    return head + html_table(("layer", "kind", ">cycles", ">predicted", "utilization", "comparison"), rows)


def graph_html(graph: IntGraph) -> str:
    """Every operation of a graph with its operands and the shape of its result."""
    head = f"<b>{escape(graph.name)}</b>: {len(graph.nodes)} integer operations"
    rows = [
        (
            escape(n.name),
            type(n).__name__,
            escape(", ".join(n.inputs)),
            "x".join(str(d) for d in graph.tensors[n.output].shape),
        )
        for n in graph.nodes
    ]
    return head + html_table(("operation", "kind", "inputs", "output shape"), rows)


def _number(value: int | None) -> str:
    return f"{value:,}" if value else ""


def _meter(work: int, possible: int) -> str:
    """A bar for the array utilization of a layer; empty for a layer without MACs."""
    if not work or not possible:
        return ""
    share = work / possible
    bar = f"<div style='width:{60 * min(1.0, share):.0f}px;height:8px;background:#1f9d6b;border-radius:4px'></div>"
    frame = f"<div style='display:inline-block;width:60px;background:#8884;border-radius:4px'>{bar}</div>"
    return f"{frame} {100 * share:.1f} %"


def _comparison(layer: Mapping[str, Any]) -> str:
    if layer["mismatches"]:
        return f"<span style='color:{_BAD}'>{layer['mismatches']:,} bytes differ</span>"
    if layer["compared_bytes"]:
        return f"<span style='color:{_GOOD}'>equal</span>"
    inside = escape(layer["compared_in"])
    return f"<span style='color:{_GOOD}' title='compared within {inside}'>equal, fused</span>" if inside else ""


def html_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """An HTML table; columns with a leading `>` are right-aligned."""
    listed = list(rows)
    sides = ["right" if c.startswith(">") else "left" for c in columns]
    heads = (f"<th style='text-align:{s}'>{escape(c.lstrip('>'))}</th>" for c, s in zip(columns, sides, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td style='text-align:{s}'>{c}</td>" for c, s in zip(row, sides, strict=True)) + "</tr>"
        for row in listed[:_MOST_ROWS]
    )
    more = f"<p>and {len(listed) - _MOST_ROWS} more</p>" if len(listed) > _MOST_ROWS else ""
    return (
        "<div style='max-height:420px;overflow:auto'><table><thead><tr>"
        f"{''.join(heads)}</tr></thead><tbody>{body}</tbody></table>{more}</div>"
    )
