"""`intloom quantize`: float model to quantized model."""

import math
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from intloom.cli.console import Terminal, new_table
from intloom.cli.options import CacheFolder, Dims, FieldOptions, parse_dims, subcommand
from intloom.common.temporary_files import check_temporary_space
from intloom.preparation import PLAIN, Preparation
from intloom.preprocess import Optimizer
from intloom.quantization import (
    DEFAULT_PERCENTILE,
    Quantized,
    QuantizeOptions,
    TensorNoise,
    quantize,
)

_HELP = """Quantize a float model to 8 bits.

The detection tail (softmax over distances, boxes, scores, best of them) stays float, unless --head whole is given.

Examples:

[bold]intloom quantize yolov8n.onnx --calibration photos/ -o yolov8n.q.onnx[/bold]

[bold]intloom quantize resnet18.onnx --calibration photos/ --mean 0.485,0.456,0.406 --std 0.229,0.224,0.225
--resize crop -o resnet18.q.onnx[/bold]

[bold]intloom quantize yolov8n.onnx --form qoperator --calibration-method percentile -o yolov8n.q.onnx[/bold]
"""


_Options = Annotated[
    QuantizeOptions,
    FieldOptions(
        {
            "form": typer.Option(help="QDQ pairs, or quantized operators."),
            "activations": typer.Option(help="Type of activations."),
            "weights": typer.Option(help="Granularity of weight scales."),
            "calibration": typer.Option(
                "--calibration-method",
                help="Method that derives ranges from samples; auto: minmax or mse, by agreement with float.",
            ),
            "percentile": typer.Option(help=f"For --calibration-method percentile. Default: {DEFAULT_PERCENTILE}."),
            "head": typer.Option(help="Keep the detection tail float, or quantize the whole model."),
            "samples": typer.Option(
                metavar="N", help="Maximum number of samples. Default: the whole calibration set, or 8 synthetic."
            ),
            "seed": typer.Option(metavar="S", help="Seed of the synthetic images."),
            "equalize": typer.Option("--equalize", help="Equalize the ranges of channels between layers first."),
            "correct_bias": typer.Option(
                "--correct-bias", help="Correct biases: keep the mean of every channel. Needs --form qdq."
            ),
            "exclude": Annotated[list[str], typer.Option(metavar="NODE", help="Keep this node float. Repeatable.")],
        }
    ),
]


_Preparation = Annotated[
    Preparation,
    FieldOptions(
        {
            "mean": Annotated[
                str,
                typer.Option(metavar="M[,M,M]", help="Inputs are (pixel / 255 - mean) / std. Stored with the model."),
            ],
            "std": Annotated[str, typer.Option(metavar="S[,S,S]", help="See --mean; 0.00392157 for pixels up to 255.")],
            "bgr": typer.Option("--bgr", help="Channels are blue, green, red."),
            "resize": typer.Option(help="How pictures of another aspect ratio fit the input."),
            "layout": typer.Option(help="Where the channels of the input are."),
        }
    ),
]


@subcommand("quantize", _HELP)
def _run(
    terminal: Terminal,
    model: Annotated[Path, typer.Argument(metavar="FLOAT.onnx", help="A float model.")],
    *,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="Q.onnx", help="Output file.")],
    images: Annotated[
        Path | None,
        typer.Option(
            "--calibration",
            metavar="DIR|FILE",
            help="Folder of images, .npy or .npz files, or one file. Default: synthetic images.",
        ),
    ] = None,
    options: _Options,
    preparation: _Preparation,
    dim: Dims = None,
    optimizer: Annotated[Optimizer, typer.Option(help="Library that preprocesses the model.")] = Optimizer.ONNXSLIM,
    cache: CacheFolder = None,
) -> None:
    check_temporary_space()
    with terminal.progress() as tell:
        done = quantize(
            model,
            output,
            images,
            options,
            dims=parse_dims(dim),
            optimizer=optimizer,
            cache=cache,
            progress=tell,
            preparation=None if preparation == PLAIN else preparation,
        )
    terminal.give(_as_dict(done), lambda: _show(terminal, done))


def _as_dict(done: Quantized) -> dict[str, Any]:
    noise = [{**asdict(n), "snr_db": n.snr_db if math.isfinite(n.snr_db) else None} for n in done.noise]
    prepared = done.preprocessed
    return {
        "path": str(done.path),
        "options": asdict(done.options),
        "samples": done.samples,
        "synthetic": done.synthetic,
        "excluded": list(done.excluded),
        "preprocess": {"hit": prepared.hit, "seconds": prepared.seconds, "saved_seconds": prepared.saved_seconds},
        "seconds": done.seconds,
        "agreement": done.agreement,
        "noise": noise,
    }


def _show(terminal: Terminal, done: Quantized) -> None:
    prepared = done.preprocessed
    if prepared.hit:
        terminal.say(f"preprocessed model from the cache: {prepared.saved_seconds:.2f} s saved")
    else:
        terminal.say(f"preprocessed in {prepared.making_seconds:.2f} s, stored in the cache")
    if done.excluded:
        count = len(done.excluded)
        terminal.say(f"{count} nodes of the detection tail stay float, the first is {done.excluded[0]} (see --head)")
    if done.agreement:
        shown_shares = ", ".join(f"{method} {100 * share:.1f} %" for method, share in done.agreement.items())
        terminal.say(f"calibration method {done.options.calibration}: agreement with float is {shown_shares}")
    worst = sorted(done.noise, key=lambda n: n.snr_db)
    shown = worst if terminal.verbosity > 0 else worst[:8]
    if terminal.verbosity >= 0:
        table = new_table(
            "tensor", "operator", ">SNR dB", ">clipped", ">at the ends", ">codes", title=_title(len(shown), len(worst))
        )
        for n in shown:
            table.add_row(n.tensor, n.op, f"{n.snr_db:.1f}", *_shares(n), str(n.distinct))
        terminal.err.print(table)
    kind = "synthetic images" if done.synthetic else "samples"
    terminal.say(f"{done.path}: {len(worst)} tensors quantized with {done.samples} {kind} in {done.seconds:.1f} s")


def _shares(noise: TensorNoise) -> tuple[str, str]:
    return f"{100 * noise.saturated:.2f} %", f"{100 * noise.at_ends:.2f} %"


def _title(shown: int, every: int) -> str:
    return (
        "signal-to-noise ratio of every tensor"
        if shown == every
        else f"the {shown} of {every} tensors with the lowest signal-to-noise ratio (-v lists all)"
    )
