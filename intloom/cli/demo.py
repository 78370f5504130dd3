"""`intloom demo`: a picture read by the accelerator, or a network of the zoo, from ONNX to a checked RTL run."""

from dataclasses import replace
from typing import Annotated

import typer

from intloom.cli.console import Terminal
from intloom.cli.hardware_options import HardwareOptions
from intloom.cli.options import FieldOptions, subcommand, zoo_names
from intloom.cli.run_output import show_record, watcher
from intloom.common.errors import EnvironmentFault, ExitCode
from intloom.common.temporary_files import check_temporary_space
from intloom.demo import DEMO_PRESET, DemoOptions, run_demo
from intloom.files import check_folder
from intloom.reading.pretrained import Pretrained, pretrained
from intloom.reading.read import READ_PRESET, Reading, ReadOptions, read_text

_HELP = """Read a photograph of text on the accelerator, simulated in RTL: find and read its lines, compare every byte.

Detector and recognizer are those of PP-OCRv4, downloaded once from the Python package index. Without network, or with
--model, a network of the zoo with random weights is built, quantized, compiled and simulated instead.

Example: [bold]intloom demo -o out/demo[/bold]
"""


_Options = Annotated[
    ReadOptions,
    FieldOptions(
        {
            "folder": typer.Option("-o", "--output", metavar="DIR", help="Output folder."),
            "picture": typer.Option(metavar="FILE", help="Picture to read. Default: one drawn from the seed."),
            "seed": typer.Option(metavar="S", min=0, help="Seed of the drawn photograph."),
            "lines": typer.Option(metavar="N", min=1, max=8, help="Maximum number of lines."),
        }
    ),
]


@subcommand("demo", _HELP)
def _run(
    terminal: Terminal,
    given: _Options,
    hardware: HardwareOptions,
    *,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="Network of the zoo, instead of text.", autocompletion=zoo_names)
    ] = None,
    imgsz: Annotated[int, typer.Option(metavar="N", help="Image height and width, for --model.")] = DemoOptions.imgsz,
) -> None:
    check_temporary_space()
    # Wrong options are an error before anything is downloaded.
    check_folder(given.folder, "the output")
    params = hardware.params_or(DEMO_PRESET)
    models = _networks(terminal) if model is None else None
    if models is None:
        options = DemoOptions(folder=given.folder, model=model or DemoOptions.model, imgsz=imgsz, params=params)
        _simulate(terminal, options)
    else:
        _read(terminal, models, replace(given, params=hardware.params_or(READ_PRESET)))


def _networks(terminal: Terminal) -> Pretrained | None:
    """The networks that read text; None, with a line that says why, where they cannot be downloaded."""
    try:
        with terminal.progress() as tell:
            tell("download", 0, 1)
            return pretrained()
    except EnvironmentFault as error:
        terminal.say(f"{error}; running {DemoOptions.model} of the zoo instead", label="warning", color="yellow")
        return None


def _read(terminal: Terminal, models: Pretrained, options: ReadOptions) -> None:
    with terminal.progress() as tell:
        done = read_text(models, options, say=terminal.say, tell=tell)
    result = done.as_dict()
    terminal.give(result, lambda: _show(terminal, done, result["mismatches"]))
    if result["mismatches"]:
        raise typer.Exit(int(ExitCode.MISMATCH))


def _show(terminal: Terminal, done: Reading, wrong: int) -> None:
    if not done.lines:
        terminal.say("the detector found no line of text in this picture", label="warning", color="yellow")
    for line in done.lines:
        same = "" if line.text == line.float_text else f"   (the float model reads {line.float_text!r})"
        terminal.say(f"{line.text}{same}", label="text:", color="bold")
    compared = sum(run["compared_bytes"] for run in (done.detector, *(line.record for line in done.lines)))
    if not wrong:
        terminal.say(f"{compared:,} bytes against golden model and onnxruntime", label="equal", color="green")
    else:
        terminal.say(f"{wrong:,} of {compared:,} bytes", label="differs", color="red")
    terminal.say("", label="report:", color="bold")
    terminal.result(str(done.page))


def _simulate(terminal: Terminal, options: DemoOptions) -> None:
    with terminal.progress() as tell:
        record, report = run_demo(options, say=terminal.say, tell=tell, watch=watcher(tell))

    def show() -> None:
        show_record(terminal, record)
        terminal.say("", label="report:", color="bold")
        terminal.result(str(report))

    terminal.give({**record, "report": str(report)}, show)
    if record["mismatches"]:
        raise typer.Exit(int(ExitCode.MISMATCH))
