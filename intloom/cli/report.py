"""`intloom report`: HTML page of a run."""

from pathlib import Path
from typing import Annotated

import typer

from intloom.cli.console import Terminal
from intloom.cli.options import subcommand
from intloom.report import write_report

_HELP = """Write a self-contained HTML page of a run, with totals, stall cycles, utilization, timeline, memory traffic,
comparison and instructions.

Example: [bold]intloom report out/run[/bold]
"""


@subcommand("report", _HELP)
def _run(
    terminal: Terminal,
    run: Annotated[Path, typer.Argument(metavar="RUNDIR", help="Folder that `intloom run -o` wrote.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Output file. Default: RUNDIR/report.html.")
    ] = None,
) -> None:
    with terminal.progress() as tell:
        tell("report", 0, 1)
        page = write_report(run, output)
    terminal.give({"path": str(page), "bytes": page.stat().st_size}, lambda: terminal.result(str(page)))
