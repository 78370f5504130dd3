"""What the command line says, and where: results on stdout, everything else on stderr."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
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
"""Called with a stage's name, steps done and steps in all."""


@dataclass(frozen=True)
class Terminal:
    """The two streams and how much to say on them."""

    verbosity: int
    """-1 quiet, 0 normal, 1 verbose, 2 with tracebacks."""
    out: Console
    err: Console

    def say(self, text: str, *, label: str = "", color: str = "") -> None:
        """A remark for people, on stderr, behind a colored word if there is one; silent with -q."""
        if self.verbosity >= 0:
            start = [(f"{label} ", color)] if label else []
            self.err.print(Text.assemble(*start, text), highlight=False, soft_wrap=True)

    def result(self, text: str) -> None:
        """A line of the result, on stdout, as it is."""
        self.out.print(text, highlight=False, soft_wrap=True)

    def table(self, table: Table) -> None:
        """A table of the result."""
        self.out.print(table)

    def json(self, value: Any) -> None:
        """The result as one JSON object, on stdout."""
        self.out.file.write(json.dumps(value, indent=2, allow_nan=False) + "\n")

    @contextmanager
    def progress(self) -> Iterator[Tell]:
        """A bar per stage, with rate and time left, while the block runs; nothing where stderr is no terminal."""
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
    """Turns reports of progress into bars, one per stage."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, stage: str, done: int, total: int) -> None:
        if stage not in self._tasks:
            self._tasks[stage] = self._bars.add_task(stage, total=None, rate="")
        task = self._bars.tasks[self._bars.task_ids.index(self._tasks[stage])]
        # A stage of one step cannot tell how far it is: its bar pulses until it is done.
        known = total if total > 1 or done else None
        self._bars.update(self._tasks[stage], completed=done, total=known, rate=_rate(task.speed))


def _rate(speed: float | None) -> str:
    if not speed:
        return ""
    for factor, unit in ((1e6, "M"), (1e3, "k")):
        if speed >= factor:
            return f"{speed / factor:.1f} {unit}/s"
    return f"{speed:.1f}/s"


def open_terminal(verbosity: int) -> Terminal:
    """The terminal for this run, with Python's logging shown on it."""
    terminal = Terminal(verbosity, _console(stderr=False), _console(stderr=True))
    level = {-1: logging.ERROR, 0: logging.WARNING, 1: logging.INFO}.get(verbosity, logging.DEBUG)
    handler = RichHandler(console=terminal.err, show_path=False, show_time=False, markup=False)
    logging.basicConfig(level=logging.WARNING, handlers=[handler], format="%(message)s", force=True)
    for name in _PACKAGES:
        logging.getLogger(name).setLevel(level)
    return terminal


def _console(*, stderr: bool) -> Console:
    # Names of files and nodes may hold brackets and colons, which are no markup and no emoji.
    console = Console(stderr=stderr, markup=False, emoji=False)
    if not console.is_terminal:
        # Into a file or pipe, tables keep their lines whole for grep.
        console.width = _FILE_WIDTH
    return console


def close_terminal() -> None:
    """Gives Python's logging back as it was, for programs that call `main` as a function."""
    for name in _PACKAGES:
        logging.getLogger(name).setLevel(logging.NOTSET)


def new_table(*columns: str, title: str | None = None) -> Table:
    """A table whose columns with a leading `>` are numbers, set to the right."""
    table = Table(title=title, title_justify="left", header_style="bold", box=None, pad_edge=False)
    for column in columns:
        table.add_column(column.lstrip(">"), justify="right" if column.startswith(">") else "left", overflow="fold")
    return table
