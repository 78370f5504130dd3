"""`intloom inspect`: where each node of a model runs, and why."""

from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from intloom.cli.console import Terminal, new_table
from intloom.cli.hardware_options import HardwareOptions
from intloom.cli.options import Dims, parse_dims, subcommand
from intloom.compiler.frontend import FoldedModel, dump_pass, fold_for, fold_options
from intloom.compiler.importer import load_model
from intloom.compiler.partition.assignment import CONSEQUENCES, Assignment
from intloom.compiler.program.program import Program
from intloom.flow.compiling import compile_model, require_static
from intloom.flow.crossings import Crossing, find_crossings
from intloom.hw.options import DEFAULT_PRESET
from intloom.hw.spec.params import preset

_HELP = """Show where every node of a model runs, and why.

Targets: array, vector, table, placement (no instruction), host, unsupported.

Examples:

[bold]intloom inspect yolov8n.q.onnx[/bold]

[bold]intloom inspect yolov8n.q.onnx --all[/bold]

[bold]intloom inspect model.onnx --dim batch=1 --json[/bold]

[bold]intloom inspect yolov8n.q.onnx --memory --preset base[/bold]

[bold]intloom inspect yolov8n.q.onnx --dump-after merge_tables[/bold]
"""
_REASONS, _OPERATORS = 8, 3
"""Reasons, and operators of each, that are printed without --all."""
_COLORS = {
    "array": "green",
    "vector": "green",
    "table": "green",
    "placement": "dim",
    "host": "yellow",
    "unsupported": "red",
}


@dataclass(frozen=True, kw_only=True)
class _Options:
    """Options of the command."""

    dim: Dims = None
    all: Annotated[bool, typer.Option("--all", help="List every node.")] = False
    dump_after: Annotated[str | None, typer.Option(metavar="PASS", help="Print the graph after this pass.")] = None
    memory: Annotated[
        bool, typer.Option("--memory", help="Compile, and show which tensors leave the chip, and why.")
    ] = False
    hardware: HardwareOptions


@subcommand("inspect", _HELP)
def _run(
    terminal: Terminal,
    model: Annotated[Path, typer.Argument(metavar="MODEL.onnx", help="A quantized model.")],
    given: _Options,
) -> None:
    params = given.hardware.params
    if given.memory:
        _show_memory(terminal, compile_model(model, params, dims=parse_dims(given.dim)).program)
        return
    loaded = load_model(model, dims=parse_dims(given.dim))
    if given.dump_after is not None:
        terminal.result(dump_pass(loaded, given.dump_after, fold_options(params)))
        return
    folded = fold_for(loaded, params)
    require_static(folded, model)
    terminal.give(_as_dict(folded), lambda: _show(terminal, folded, every_node=given.all))


def _as_dict(folded: FoldedModel) -> dict[str, Any]:
    return {
        "assignments": [asdict(v) for v in folded.assignments],
        "warnings": list(folded.warnings),
        "regions": [
            {
                "nodes": len(g.nodes),
                "inputs": g.inputs,
                "outputs": g.outputs,
                "host_before": part is not None,
                **asdict(crossing),
            }
            for g, part, crossing in zip(folded.regions, folded.host_parts, _crossings(folded), strict=True)
        ],
        "final_host_part": folded.final_host_part is not None,
    }


def _crossings(folded: FoldedModel) -> tuple[Crossing, ...]:
    return find_crossings(folded, preset(DEFAULT_PRESET))


def _show_nodes(terminal: Terminal, folded: FoldedModel) -> None:
    """Print every node."""
    table = new_table("node", "operator", "runs on", ">row", "reason", "how to change it")
    for v in folded.assignments:
        table.add_row(v.name, v.op, _target(v), str(v.row or ""), v.reason, v.remedy)
    terminal.table(table)


def _target(assignment: Assignment) -> Text:
    return Text(str(assignment.target), _COLORS.get(str(assignment.target), ""))


def _show_reasons(terminal: Terminal, folded: FoldedModel) -> None:
    """Print why nodes run on the host: each reason with its first node, consequences of others last."""
    groups: dict[tuple[int, str, str], list[Assignment]] = {}
    for v in folded.assignments:
        if v.target in ("host", "unsupported"):
            groups.setdefault((v.row, v.reason, v.remedy), []).append(v)
    if not groups:
        return
    table = new_table("runs on", ">nodes", "operators", "first node", ">row", "reason", "how to change it")
    ordered = sorted(groups.items(), key=lambda group: group[0][1].startswith(CONSEQUENCES))
    for (row, reason, remedy), nodes in ordered[:_REASONS]:
        operators = list(dict.fromkeys(v.op for v in nodes))
        names = ", ".join(operators[:_OPERATORS]) + (" …" if len(operators) > _OPERATORS else "")
        table.add_row(_target(nodes[0]), str(len(nodes)), names, nodes[0].name, str(row), reason, remedy)
    terminal.table(table)
    terminal.say("docs/refusals.md lists the rows")
    if len(groups) > _REASONS:
        terminal.say(f"{len(groups) - _REASONS} more reasons (--all lists every node)")


def _show(terminal: Terminal, folded: FoldedModel, *, every_node: bool) -> None:
    (_show_nodes if every_node else _show_reasons)(terminal, folded)
    counts = Counter(str(v.target) for v in folded.assignments)
    regions = f"; {len(folded.regions)} regions with host parts between them" if len(folded.regions) > 1 else ""
    terminal.say(", ".join(f"{n} {kind}" for kind, n in counts.most_common()) + regions)
    if len(folded.regions) > 1:
        _show_crossings(terminal, folded)
    for warning in folded.warnings:
        terminal.say(warning, label="warning", color="yellow")


def _show_crossings(terminal: Terminal, folded: FoldedModel) -> None:
    """What every region costs in transfers, and how to join it with the one before."""
    table = new_table("region", "bytes in", "bytes out", "cycles", "host nodes before it", "how to join it")
    for c in _crossings(folded):
        numbers = (f"{n:,}" for n in (c.bytes_in, c.bytes_out, c.cycles))
        table.add_row(str(c.region + 1), *numbers, str(len(c.host_nodes)), c.remedy if c.region else "")
    terminal.table(table)


def _show_memory(terminal: Terminal, program: Program) -> None:
    """Print where each tensor lies; those that never leave the scratchpad only with -v."""
    word, residences = program.params.word_bytes, program.residences
    traffic = sum(layer.dram_words for layer in program.layers) * word
    if terminal.as_json:
        terminal.json({"dram_bytes": traffic, "tensors": [asdict(r) | {"bytes": r.words * word} for r in residences]})
        return
    table = new_table("tensor", ">KiB", "scratchpad", "why it leaves the chip")
    for r in residences:
        rows = "whole" if r.rows == r.height else f"{r.rows} of {r.height} rows" if r.rows else "tiles"
        if r.reason or terminal.verbosity > 0:
            table.add_row(r.tensor, f"{r.words * word / 1024:,.1f}", rows, r.reason)
    terminal.table(table)
    inside = sum(not r.reason for r in residences)
    terminal.say(
        f"{inside} of {len(residences)} tensors never leave the chip; {traffic / 1e6:.2f} MB of memory traffic"
    )
