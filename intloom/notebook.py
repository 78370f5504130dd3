"""HTML for notebooks: short tables of programs and runs, in colours that suit light and dark pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from compiler.ir import IntGraph
from compiler.program.program import Program

_MOST_ROWS = 200


def program_html(program: Program) -> str:
    """A program: its hardware, and every layer with its predicted cost."""
    p = program.params
    macs = sum(layer.macs for layer in program.layers)
    use = macs / (program.predicted_cycles * p.macs) if program.predicted_cycles else 0.0
    head = (
        f"<b>{escape(program.name)}</b>: {len(program.instructions):,} instructions for a {p.rows}x{p.cols} array, "
        f"{program.predicted_cycles:,} cycles predicted, array use {100 * use:.1f} %"
    )
    rows = [
        (layer.name, layer.op, f"{layer.macs:,}", f"{layer.predicted_cycles:,}", f"{layer.dram_words * p.word_bytes:,}")
        for layer in program.layers
    ]
    return head + _table(("layer", "kind", "MACs", "cycles", "memory bytes"), rows)


def run_html(record: Mapping[str, Any]) -> str:
    """A run: totals, verdict, and every layer with its measured cost."""
    equal = "not compared"
    if record["compared_bytes"]:
        count = f"{record['compared_bytes']:,} bytes compared"
        equal = f"<span style='color:#b3261e'>{record['mismatches']:,} bytes differ</span>, {count}"
        if not record["mismatches"]:
            equal = f"<span style='color:#1f9d6b'>bit-exact</span>, {count}"
    head = f"<b>{escape(record['name'])}</b> on {record['backend']}: {equal}"
    if record["cycles"]:
        head += f"; {record['cycles']:,} cycles, array use {100 * record['mac_use']:.1f} %"
    rows = [
        (layer["name"], layer["op"], f"{layer['cycles']:,}", f"{100 * layer['mac_use']:.1f} %" if layer["macs"] else "")
        for layer in record["layers"]
    ]
    return head + _table(("layer", "kind", "cycles", "array use"), rows)


def graph_html(graph: IntGraph) -> str:
    """A graph: every operation with its operands and the shape of its result."""
    head = f"<b>{escape(graph.name)}</b>: {len(graph.nodes)} integer operations"
    rows = [
        (n.name, type(n).__name__, ", ".join(n.inputs), "x".join(str(d) for d in graph.tensors[n.output].shape))
        for n in graph.nodes
    ]
    return head + _table(("operation", "kind", "reads", "makes"), rows)


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    listed = list(rows)
    cells = "".join(f"<th style='text-align:left'>{escape(c)}</th>" for c in columns)
    body = "".join(
        "<tr>" + "".join(f"<td style='text-align:left'>{escape(c)}</td>" for c in row) + "</tr>"
        for row in listed[:_MOST_ROWS]
    )
    more = f"<p>and {len(listed) - _MOST_ROWS} more</p>" if len(listed) > _MOST_ROWS else ""
    return (
        "<div style='max-height:420px;overflow:auto'><table><thead><tr>"
        f"{cells}</tr></thead><tbody>{body}</tbody></table>{more}</div>"
    )
