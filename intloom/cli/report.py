"""`intloom report`: one page about a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from intloom.cli.options import AsJson, terminal_of
from intloom.report import write_report

_HELP = """Make one self-contained HTML page of a run: totals, lost cycles, timeline, traffic, parity, instructions.

Example: [bold]intloom report out/run[/bold]
"""


def register(app: typer.Typer) -> None:
    """Adds the subcommand."""
    app.command("report", help=_HELP)(_run)


def _run(
    context: typer.Context,
    run: Annotated[Path, typer.Argument(metavar="RUNDIR", help="Folder that `intloom run -o` wrote.")],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="The page; else RUNDIR/report.html.")] = None,
    as_json: AsJson = False,
) -> None:
    terminal = terminal_of(context)
    with terminal.progress() as tell:
        tell("report", 0, 1)
        page = write_report(run, output)
    if as_json:
        terminal.json({"path": str(page), "bytes": page.stat().st_size})
    else:
        terminal.result(str(page))
