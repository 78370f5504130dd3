"""`intloom demo`: the whole flow in one command."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from intloom.cli.hardware_options import HardwareOptions
from intloom.cli.options import AsJson, FieldOptions, subcommand, terminal_of, zoo_names
from intloom.cli.run_output import show_record, watcher
from intloom.common.errors import ExitCode
from intloom.common.temporary_files import check_temporary_space
from intloom.demo import DEMO_PRESET, DemoOptions, run_demo

_HELP = """Build a small YOLOv8n, quantize and compile it, simulate it in RTL, compare every byte, write the report.

Example: [bold]intloom demo -o out/demo[/bold]
"""


_Options = Annotated[
    DemoOptions,
    FieldOptions(
        {
            "folder": Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Output folder.")],
            "model": Annotated[str, typer.Option(metavar="NAME", help="Network of the zoo.", autocompletion=zoo_names)],
            "imgsz": Annotated[int, typer.Option(metavar="N", help="Image height and width.")],
        }
    ),
]


@subcommand("demo", _HELP)
def _run(
    context: typer.Context,
    given: _Options,
    hardware: HardwareOptions,
    as_json: AsJson = False,
) -> None:
    terminal = terminal_of(context)
    check_temporary_space()
    with terminal.progress() as tell:
        options = replace(given, params=hardware.params_or(DEMO_PRESET))
        done = run_demo(options, say=terminal.say, tell=tell, watch=watcher(tell))
    if as_json:
        terminal.json({**done.record, "report": str(done.report)})
    else:
        show_record(terminal, done.record)
        terminal.say("", label="report:", color="bold")
        terminal.result(str(done.report))
    if done.record["mismatches"]:
        raise typer.Exit(int(ExitCode.MISMATCH))
