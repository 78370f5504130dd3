"""`intloom zoo`: list and build float models."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from intloom.cli.console import Terminal, new_table
from intloom.cli.options import subcommand, zoo_names
from intloom.files import check_output, write_bytes
from intloom.zoo import ZOO, build

_BUILD_HELP = """Build a float ONNX model of the zoo.

Weights are seeded random numbers, normalized so that no activation is degenerate.

Example: [bold]intloom zoo build yolov8n --imgsz 320 --seed 1 -o yolov8n.onnx[/bold]
"""


@dataclass(frozen=True, kw_only=True)
class _Options:
    """Options of the command."""

    imgsz: Annotated[
        int | None, typer.Option("--imgsz", metavar="N", help="Image height and width; of a line of text, its width.")
    ] = None
    seed: Annotated[int, typer.Option("--seed", metavar="S", help="Seed of the weights.")] = 0
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Output file. Default: NAME.onnx.")] = None


@subcommand("zoo list", "List the networks.\n\nExample: [bold]intloom zoo list[/bold]")
def _list(terminal: Terminal) -> None:
    rows = [{"name": e.name, "doc": e.doc, "imgsz": e.default_size, "multiple": e.multiple} for e in ZOO.values()]
    table = new_table("name", ">size", ">multiple of", "description")
    for e in ZOO.values():
        table.add_row(e.name, str(e.default_size), str(e.multiple), e.doc)
    terminal.give(rows, lambda: terminal.table(table))


@subcommand("zoo build", _BUILD_HELP)
def _build(
    terminal: Terminal,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name from `intloom zoo list`.", autocompletion=zoo_names)
    ],
    given: _Options,
) -> None:
    target = given.output or Path(f"{name}.onnx")
    check_output(target)
    with terminal.progress() as tell:
        tell("build", 0, 1)
        model = build(name, given.imgsz, given.seed)
        data = model.SerializeToString(deterministic=True)
        tell("build", 1, 1)
        write_bytes(target, data)
    shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    nodes = len(model.graph.node)
    terminal.give(
        {"path": str(target), "bytes": len(data), "nodes": nodes, "input": shape, "seed": given.seed},
        lambda: terminal.say(f"{target}: {nodes} nodes, input {shape}, {len(data) / 1e6:.1f} MB"),
    )
