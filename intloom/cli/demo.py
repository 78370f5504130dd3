"""`intloom demo`: the whole flow in one command."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from intloom.cli.hardware_options import HardwareOptions
from intloom.cli.options import AsJson, grouped, terminal_of, zoo_names
from intloom.cli.run_output import show_record, watcher
from intloom.common.errors import ExitCode
from intloom.common.temporary_files import check_temporary_space
from intloom.demo import DEMO_PRESET, DemoOptions, run_demo

_HELP = """Build a small YOLOv8n, quantize and compile it, simulate it in RTL, compare every byte, write the report.

Example: [bold]intloom demo -o out/demo[/bold]
"""


@dataclass(frozen=True, kw_only=True)
class _Options:
    """Options of the command."""

    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Output folder.")] = Path("out/demo")
    model: Annotated[str, typer.Option(metavar="NAME", help="Network of the zoo.", autocompletion=zoo_names)] = (
        "yolov8n"
    )
    imgsz: Annotated[int, typer.Option(metavar="N", help="Image height and width.")] = 96
    hardware: HardwareOptions


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    app.command("demo", help=_HELP)(grouped(_run))


def _run(
    context: typer.Context,
    given: _Options,
    as_json: AsJson = False,
) -> None:
    terminal = terminal_of(context)
    check_temporary_space()
    with terminal.progress() as tell:
        options = DemoOptions(
            folder=given.output, model=given.model, imgsz=given.imgsz, params=given.hardware.params_or(DEMO_PRESET)
        )
        done = run_demo(options, say=terminal.say, tell=tell, watch=watcher(tell))
    if as_json:
        terminal.json({**done.record, "report": str(done.report)})
    else:
        show_record(terminal, done.record)
        terminal.say("", label="report:", color="bold")
        terminal.result(str(done.report))
    if done.record["mismatches"]:
        raise typer.Exit(int(ExitCode.MISMATCH))
