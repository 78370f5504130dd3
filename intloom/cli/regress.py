"""`intloom regress`: suites of checked simulations, on this machine or on a Dask cluster."""

import fnmatch
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from intloom.cli.console import Terminal, new_table
from intloom.cli.options import subcommand
from intloom.common.errors import ExitCode, UsageError
from intloom.common.temporary_files import check_temporary_space
from intloom.compiler.schedule import compile_graph
from intloom.files import check_folder
from intloom.flow.networks import load_network
from intloom.report.regression import write_regression
from intloom.sim.processes import Processes
from intloom.sim.regress.case import Case, CaseResult, Outcome, Tools
from intloom.sim.regress.reports import write_reports
from intloom.sim.regress.runner import Summary, run_cases
from intloom.sim.regress.store import Store
from intloom.sim.regress.suites import GROUPS, SEEDED, SUITES, suite

_HELP = f"""Run a suite of RTL simulations, each compared byte for byte. Suites: {", ".join((*SUITES, *GROUPS))}.

An interrupted regression resumes. Results are written as JUnit XML, JSON and HTML. For every failed case, the command
that runs it alone is printed.

Examples:

[bold]intloom regress smoke --jobs 2[/bold]

[bold]intloom regress ops --case 'conv-*' -o out/ops[/bold]

[bold]intloom regress random --seeds 1000:4999 --jobs 2[/bold]

[bold]intloom regress all --dask tcp://head-node:8786[/bold]
"""


@dataclass(frozen=True, kw_only=True)
class _Options:
    """Options of the command."""

    jobs: Annotated[int, typer.Option(metavar="N", help="Processes on this machine.")] = 1
    dask: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Address of a Dask scheduler to run on.")] = None
    case: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only these cases; * is a wildcard. Repeatable.")
    ] = None
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DIR", help="Output folder. Default: out/regress/SUITE.")
    ] = None
    seeds: Annotated[
        str | None, typer.Option(metavar="FIRST:LAST", help="Suites random and soak: these seeds instead of their own.")
    ] = None
    fresh: Annotated[bool, typer.Option("--fresh", help="Rerun all cases, including those that passed before.")] = False


@subcommand("regress", _HELP)
def _run(
    terminal: Terminal,
    *,
    suite_name: Annotated[
        str, typer.Argument(metavar="[SUITE]", help="Suite or group.", autocompletion=lambda: [*SUITES, *GROUPS])
    ] = "smoke",
    given: _Options,
) -> None:
    where = Processes(given.jobs, given.dask)
    cases = choose_cases(_cases(suite_name, given.seeds), given.case or [])
    folder = given.output or Path("out/regress") / suite_name
    check_folder(folder, "output")
    check_temporary_space()
    tools = Tools(compile=compile_graph, load_network=load_network)
    with terminal.progress() as tell:
        done = 0
        tell("cases", 0, len(cases))

        def report(result: CaseResult) -> None:
            nonlocal done
            done += 1
            tell("cases", done, len(cases))
            _say(terminal, result)

        store = Store(folder)
        if given.fresh:
            store.forget({c.key for c in cases})
        summary = run_cases(cases, tools, store, where=where, report=report)
    _finish(terminal, summary, folder)
    if not summary.ok:
        raise typer.Exit(int(ExitCode.MISMATCH))


def _cases(suite_name: str, seeds: str | None) -> list[Case]:
    if seeds is None:
        return suite(suite_name)
    if suite_name not in SEEDED:
        raise UsageError(f"--seeds needs suite {' or '.join(SEEDED)}, not {suite_name}")
    first, _, last = seeds.partition(":")
    if not (first.isdecimal() and last.isdecimal() and int(first) <= int(last)):
        raise UsageError(f"--seeds must be FIRST:LAST, such as 1000:1999, not {seeds!r}")
    return SEEDED[suite_name](range(int(first), int(last) + 1))


def choose_cases(cases: list[Case], patterns: list[str]) -> list[Case]:
    """The cases whose names match any pattern; all cases without patterns."""
    for pattern in patterns:
        if not any(fnmatch.fnmatchcase(c.name, pattern) for c in cases):
            raise UsageError(f"no case matches {pattern!r}; case names are {', '.join(c.name for c in cases[:8])} …")
    return [c for c in cases if not patterns or any(fnmatch.fnmatchcase(c.name, p) for p in patterns)]


def _say(terminal: Terminal, result: CaseResult) -> None:
    if result.outcome is Outcome.PASS:
        if terminal.verbosity > 0:
            cost = f"{result.cycles:,} cycles, {result.seconds:.1f} s"
            terminal.say(f"{result.name}: {cost}", label="pass", color="green")
        return
    terminal.say(f"{result.name} (seed {result.seed}): {result.message}", label=str(result.outcome), color="red")
    terminal.say(f"  run it alone: {result.reproduce}")


def _finish(terminal: Terminal, summary: Summary, folder: Path) -> None:
    files = {**write_reports(summary, folder), "html": write_regression(summary, folder)}
    names = {kind: str(path) for kind, path in files.items()}
    results = [asdict(r) for r in summary.results]
    value = {"ok": summary.ok, "resumed": summary.resumed, "results": results, "files": names}
    terminal.give(value, lambda: _show(terminal, summary, names.values()))


def _show(terminal: Terminal, summary: Summary, files: Iterable[str]) -> None:
    table = new_table("suite", ">passed", ">failed", ">instructions", ">cycles", ">bytes compared")
    for name in dict.fromkeys(r.suite for r in summary.results):
        rows = [r for r in summary.results if r.suite == name]
        passed = sum(r.outcome is Outcome.PASS for r in rows)
        totals = (sum(getattr(r, n) for r in rows) for n in ("instructions", "cycles", "compared_bytes"))
        table.add_row(name, str(passed), str(len(rows) - passed), *(f"{total:,}" for total in totals))
    terminal.table(table)
    resumed = f", {summary.resumed} of them passed in an earlier run" if summary.resumed else ""
    terminal.say(f"{len(summary.results)} cases{resumed}; {', '.join(files)}")
