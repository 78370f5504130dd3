"""`intloom evaluate`: accuracy as float model, as quantized model and on the accelerator."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from intloom.cli.console import Terminal, new_table
from intloom.cli.hardware_options import HardwareOptions
from intloom.cli.options import Dims, FieldOptions, check_least, parse_dims, subcommand
from intloom.common.errors import ExitCode
from intloom.common.temporary_files import check_temporary_space
from intloom.evaluation import EvaluateOptions, Evaluation, evaluate
from intloom.files import write_text
from intloom.report.evaluation import write_evaluation

_HELP = """Measure the accuracy of a network on images: float model, quantized model and accelerator.

The data is a folder in COCO layout (annotations.json and images), in YOLO layout (folders images and labels), or for
classification with one folder per class. For pictures without labels the figures are agreement with the float
model. A float model is quantized with images of the data. The accelerator's results
are those of the golden model; the first images also run in RTL. The exit code is 1 if these results differ.

An interrupted evaluation resumes. Results, pictures of the worst images, evaluation.json and
evaluation.html are in the output folder.

Examples:

[bold]intloom evaluate yolov8n.onnx --data coco8 --task detect -o out/evaluate[/bold]

[bold]intloom evaluate resnet18.q.onnx --float resnet18.onnx --data flowers --task classify --normalize imagenet[/bold]
"""
_MOST_ROWS = 10


_Options = Annotated[
    EvaluateOptions,
    FieldOptions(
        {
            "task": typer.Option(help="What the network computes."),
            "float_model": typer.Option(
                "--float", metavar="FLOAT.onnx", help="Float model of a quantized model or program."
            ),
            "images": typer.Option(metavar="N", help="Only the first N images."),
            "rtl_images": typer.Option("--rtl", metavar="N", help="Images that also run in RTL."),
            "normalization": typer.Option(
                "--normalize",
                help="Pixels from 0 to 1, or as classifiers of ImageNet expect. Default: as stored by quantize.",
            ),
            "folder": typer.Option("-o", "--output", metavar="DIR", help="Output folder."),
        }
    ),
]


@subcommand("evaluate", _HELP)
def _run(
    terminal: Terminal,
    model: Annotated[Path, typer.Argument(metavar="MODEL|PROGRAM", help="Float or quantized model, or program.")],
    data: Annotated[Path, typer.Option(metavar="DIR", help="Folder of images.")],
    given: _Options,
    hardware: HardwareOptions,
    dim: Dims = None,
) -> None:
    check_least("--images", given.images, 1)
    check_least("--rtl", given.rtl_images, 0)
    check_temporary_space()
    options = replace(given, params=hardware.chosen, dims=parse_dims(dim))
    with terminal.progress() as tell:
        done = evaluate(model, data, options, say=terminal.say, tell=tell)
    write_text(given.folder / "evaluation.json", json.dumps(done.to_dict(), indent=1))
    page = write_evaluation(model.stem, done.to_dict(), given.folder)
    terminal.give(done.to_dict(), lambda: _show(terminal, done, page))
    if not done.rtl_equal:
        raise typer.Exit(int(ExitCode.MISMATCH))


def _show(terminal: Terminal, done: Evaluation, page: Path) -> None:
    names = list(done.scores)
    figures = list(next(iter(done.scores.values())).figures)
    table = new_table(f"{done.images} images", *(f">{n}" for n in names))
    for figure in figures:
        table.add_row(figure, *(_percent(done.scores[n].figures[figure]) for n in names))
    for label in next(iter(done.scores.values())).classes:
        table.add_row(f"{label} {figures[0]}", *(_percent(done.scores[n].classes[label][figures[0]]) for n in names))
    terminal.table(table)
    if done.costs:
        costs = new_table("layer", ">share of the error")
        for cost in done.costs[:_MOST_ROWS]:
            costs.add_row(cost.layer, _percent(cost.share))
        terminal.table(costs)
    if done.rtl_images:
        result = "equal to the golden model" if done.rtl_equal else "NOT equal to the golden model"
        terminal.say(f"images in RTL: {done.rtl_images}, {result}")
    for line in done.suggestions:
        terminal.say(line, label="suggestion", color="yellow")
    terminal.result(str(page))


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"
