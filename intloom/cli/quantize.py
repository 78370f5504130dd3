"""`intloom quantize`: from a float model to a quantized one."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from intloom.cli.console import Terminal, new_table
from intloom.cli.options import AsJson, CacheFolder, cache_at, terminal_of
from intloom.preprocess import Optimizer
from intloom.quantization import (
    DEFAULT_PERCENTILE,
    ActivationType,
    Calibration,
    Form,
    Head,
    Quantized,
    QuantizeOptions,
    TensorNoise,
    WeightScales,
    quantize,
)

_HELP = """Quantize a float model to 8 bits.

The detection tail (softmax over distances, boxes, scores) stays float unless --head whole is given.

Examples:

[bold]intloom quantize yolov8n.onnx --calibration photos/ -o yolov8n.q.onnx[/bold]

[bold]intloom quantize yolov8n.onnx --form qoperator --calibration-method percentile -o yolov8n.q.onnx[/bold]
"""


def register(app: typer.Typer) -> None:
    """Adds the subcommand."""
    app.command("quantize", help=_HELP)(_run)


def _run(
    context: typer.Context,
    model: Annotated[Path, typer.Argument(metavar="FLOAT.onnx", help="A float model.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="Q.onnx", help="The quantized model.")],
    calibration: Annotated[
        Path | None, typer.Option(metavar="DIR|FILE", help="Pictures in a folder, or .npy/.npz; else synthetic ones.")
    ] = None,
    form: Annotated[Form, typer.Option(help="QuantizeLinear pairs, or quantized operators.")] = Form.QDQ,
    activations: Annotated[ActivationType, typer.Option(help="Type of activations.")] = ActivationType.UINT8,
    weights: Annotated[WeightScales, typer.Option(help="Granularity of weight scales.")] = WeightScales.PER_CHANNEL,
    method: Annotated[
        Calibration, typer.Option("--calibration-method", help="How ranges follow from samples.")
    ] = Calibration.MINMAX,
    percentile: Annotated[
        float | None, typer.Option(help=f"For --calibration-method percentile; else {DEFAULT_PERCENTILE}.")
    ] = None,
    head: Annotated[Head, typer.Option(help="Leave the detection tail float, or quantize the whole.")] = Head.FLOAT,
    samples: Annotated[int, typer.Option(metavar="N", help="Calibration images at most.")] = 8,
    seed: Annotated[int, typer.Option(metavar="S", help="Chooses synthetic images.")] = 0,
    exclude: Annotated[list[str] | None, typer.Option(metavar="NODE", help="Leave this node float; repeat.")] = None,
    optimizer: Annotated[Optimizer, typer.Option(help="Which library prepares the model.")] = Optimizer.ONNXSLIM,
    cache: CacheFolder = None,
    as_json: AsJson = False,
) -> None:
    terminal = terminal_of(context)
    options = QuantizeOptions(
        form=form, activations=activations, weights=weights, calibration=method, head=head, samples=samples,
        percentile=percentile, seed=seed, exclude=tuple(exclude or ()),
    )  # fmt: skip
    with terminal.progress() as tell:
        done = quantize(model, output, calibration, options, optimizer=optimizer, cache=cache_at(cache), progress=tell)
    if as_json:
        terminal.json(_as_dict(done))
    else:
        _show(terminal, done)


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
        "noise": noise,
    }


def _show(terminal: Terminal, done: Quantized) -> None:
    prepared = done.preprocessed
    if prepared.hit:
        terminal.say(f"preprocessed model from the cache: {prepared.saved_seconds:.2f} s saved")
    else:
        terminal.say(f"preprocessed in {prepared.making_seconds:.2f} s, kept in the cache")
    if done.excluded:
        count = len(done.excluded)
        terminal.say(
            f"{count} nodes of the detection tail stay float, from {done.excluded[0]} on (--head whole quantizes them)"
        )
    worst = sorted(done.noise, key=lambda n: n.snr_db)
    shown = worst if terminal.verbosity > 0 else worst[:8]
    if terminal.verbosity >= 0:
        table = new_table(
            "tensor", "made by", ">SNR dB", ">clipped", ">at the ends", ">codes", title=_title(len(shown), len(worst))
        )
        for n in shown:
            table.add_row(n.tensor, n.op, f"{n.snr_db:.1f}", *_shares(n), str(n.distinct))
        terminal.err.print(table)
    terminal.say(f"{done.path}: {len(worst)} tensors quantized in {done.seconds:.1f} s")


def _shares(noise: TensorNoise) -> tuple[str, str]:
    return f"{100 * noise.saturated:.2f} %", f"{100 * noise.at_ends:.2f} %"


def _title(shown: int, every: int) -> str:
    return (
        "signal to noise of every tensor"
        if shown == every
        else f"the {shown} noisiest of {every} tensors (-v shows all)"
    )
