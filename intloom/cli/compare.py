"""`intloom compare`: two runs side by side."""

from pathlib import Path
from typing import Annotated

import typer

from intloom.cli.console import Terminal, new_table
from intloom.cli.options import subcommand
from intloom.files import check_output
from intloom.report.compare import change, compare_runs, cycles_of, totals, write_compare

_HELP = """Compare two runs: cycles, memory traffic and differences of every layer, before and after a change.

Layers are matched by name. The page has all layers, the table the ten whose cycles changed most.

Example: [bold]intloom compare out/before out/after -o compare.html[/bold]
"""
_MOST_ROWS = 10


@subcommand("compare", _HELP)
def _run(
    terminal: Terminal,
    before: Annotated[Path, typer.Argument(metavar="RUNDIR", help="Folder that `intloom run -o` wrote.")],
    after: Annotated[Path, typer.Argument(metavar="RUNDIR", help="The other one.")],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE.html", help="Page. Default: in the second folder."),
    ] = None,
) -> None:
    compared = compare_runs(before, after)
    page = output or after / "compare.html"
    check_output(page, before / "run.json", after / "run.json")
    write_compare(compared, page)
    if terminal.as_json:
        terminal.json({**compared, "path": str(page)})
        return
    table = new_table("", ">before", ">after", ">change")
    for total in totals(compared):
        table.add_row(total["label"], total["a"], total["b"], total["change"])
    changed = [row for row in compared["layers"] if len(set(cycles_of(row))) > 1]
    for row in sorted(changed, key=lambda r: (cycles_of(r)[0] or 0) - (cycles_of(r)[1] or 0))[:_MOST_ROWS]:
        a, b = cycles_of(row)
        table.add_row(row["name"], *("" if c is None else f"{c:,}" for c in (a, b)), change(a, b))
    terminal.table(table)
    for row in compared["setup"]:
        terminal.say(f"{row['what']}: {row['a']} before, {row['b']} after", label="set-up")
    terminal.result(str(page))
