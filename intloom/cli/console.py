"""Output of the command line: results on stdout, messages and progress on stderr."""

import json
import logging
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.logging import RichHandler
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

_PACKAGES = ("hw", "compiler", "sim", "intloom")
_FILE_WIDTH = 200
Tell = Callable[[str, int, int], None]
"""Called with the name of a stage, steps done and total steps."""


@dataclass(frozen=True)
class Terminal:
    """The two output streams and the verbosity."""

    verbosity: int
    """-1 quiet, 0 normal, 1 verbose, 2 with tracebacks."""
    out: Console
    err: Console
    command: str = ""
    """The command line, for its repetition."""
    as_json: bool = False
    """Results are printed as JSON."""

    def say(self, text: str, *, label: str = "", color: str = "") -> None:
        """Print a message on stderr, with an optional colored label; nothing with -q."""
        if self.verbosity >= 0:
            start = [(f"{label} ", color)] if label else []
            self.err.print(Text.assemble(*start, text), highlight=False, soft_wrap=True)

    def result(self, text: str) -> None:
        """Print a line of the result on stdout."""
        self.out.print(text, highlight=False, soft_wrap=True)

    def results(self, lines: Iterable[str]) -> None:
        """Print lines of the result on stdout."""
        for line in lines:
            self.result(line)

    def table(self, table: Table) -> None:
        """Print a table of the result on stdout."""
        self.out.print(table)

    def json(self, value: Any) -> None:
        """Print the result as JSON on stdout."""
        self.out.file.write(json.dumps(value, indent=2, allow_nan=False) + "\n")

    def give(self, value: Any, show: Callable[[], None]) -> None:
        """Print the result: `value` as JSON, or what `show` prints of it for readers."""
        if self.as_json:
            self.json(value)
        else:
            show()

    @contextmanager
    def progress(self) -> Iterator[Tell]:
        """Show one progress bar per stage while the block runs, if stderr is a terminal."""
        if self.verbosity < 0 or not self.err.is_terminal:
            yield lambda _stage, _done, _all: None
            return
        columns = (
            TextColumn("{task.description:>12}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=self.err, transient=True) as bars:
            yield _Bars(bars)


class _Bars:
    """Progress bars, one per stage."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, stage: str, done: int, total: int) -> None:
        if stage not in self._tasks:
            self._tasks[stage] = self._bars.add_task(stage, total=None, rate="")
        task = self._bars.tasks[self._bars.task_ids.index(self._tasks[stage])]
        # A stage with one step has no measurable progress: its bar pulses until it is done.
        known = total if total > 1 or done else None
        self._bars.update(self._tasks[stage], completed=done, total=known, rate=_rate(task.speed))


def _rate(speed: float | None) -> str:
    if not speed:
        return ""
    for factor, unit in ((1e6, "M"), (1e3, "k")):
        if speed >= factor:
            return f"{speed / factor:.1f} {unit}/s"
    return f"{speed:.1f}/s"


def open_terminal(verbosity: int, words: Sequence[str] = ()) -> Terminal:
    """Open the terminal of a run, and send Python's log to its stderr."""
    terminal = Terminal(verbosity, _console(stderr=False), _console(stderr=True), shlex.join(["intloom", *words]))
    level = {-1: logging.ERROR, 0: logging.WARNING, 1: logging.INFO}.get(verbosity, logging.DEBUG)
    handler = RichHandler(console=terminal.err, show_path=False, show_time=False, markup=False)
    logging.basicConfig(level=logging.WARNING, handlers=[handler], format="%(message)s", force=True)
    for name in _PACKAGES:
        logging.getLogger(name).setLevel(level)
    return terminal


def _console(*, stderr: bool) -> Console:
    # Names of files and nodes can contain brackets and colons, which rich would interpret as markup and emoji.
    console = Console(stderr=stderr, markup=False, emoji=False)
    if not console.is_terminal:
        # In a file or pipe, table rows are not wrapped.
        console.width = _FILE_WIDTH
    return console


def close_terminal() -> None:
    """Restore the log levels, for programs that call `main` as a function."""
    for name in _PACKAGES:
        logging.getLogger(name).setLevel(logging.NOTSET)


def new_table(*columns: str, title: str | None = None) -> Table:
    """A table; columns with a leading `>` are right-aligned."""
    table = Table(title=title, title_justify="left", header_style="bold", box=None, pad_edge=False)
    for column in columns:
        table.add_column(column.lstrip(">"), justify="right" if column.startswith(">") else "left", overflow="fold")
    return table
