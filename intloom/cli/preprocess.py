"""`intloom preprocess`: prepare a float model for quantization."""

import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from intloom.cli.console import Terminal
from intloom.cli.options import CacheFolder, Dims, parse_dims, subcommand
from intloom.files import atomic_path, check_output
from intloom.preprocess import Optimizer, preprocess

_HELP = """Fold constants and batch normalization, simplify the graph, infer shapes.

The result is cached. The key is a hash of model, options and library versions.

Example: [bold]intloom preprocess yolov8n.onnx -o yolov8n.prep.onnx[/bold]
"""


@dataclass(frozen=True, kw_only=True)
class _Options:
    """Options of the command."""

    output: Annotated[Path | None, typer.Option("-o", "--output", help="Copy of the result.")] = None
    optimizer: Annotated[Optimizer, typer.Option(help="Library that simplifies the graph.")] = Optimizer.ONNXSLIM
    dim: Dims = None
    cache: CacheFolder = None


@subcommand("preprocess", _HELP)
def _run(
    terminal: Terminal,
    model: Annotated[Path, typer.Argument(metavar="FLOAT.onnx", help="A float model.")],
    given: _Options,
) -> None:
    if given.output is not None:
        check_output(given.output, model)
    with terminal.progress() as tell:
        tell("preprocess", 0, 1)
        done = preprocess(model, given.optimizer, given.cache, dims=parse_dims(given.dim))
    if given.output is not None:
        with atomic_path(given.output) as temporary:
            shutil.copyfile(done.path, temporary)
    if terminal.as_json:
        terminal.json({**asdict(done), "path": str(given.output or done.path), "saved_seconds": done.saved_seconds})
        return
    source = f"from the cache, {done.saved_seconds:.2f} s saved" if done.hit else f"made in {done.making_seconds:.2f} s"
    terminal.say(f"{done.nodes_before} nodes before, {done.nodes_after} after; {source}")
    terminal.result(str(given.output or done.path))
