"""Signals that a process ignores without affecting its children, and the processes that may get one."""

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import NamedTuple


class Process(NamedTuple):
    """A process of this machine."""

    number: int
    state: str
    """A letter; Z and X are processes that have ended."""
    parent: int
    group: int


def processes() -> Iterator[Process]:
    """All processes; those that end meanwhile are left out."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError):
            # The second field, the name, can contain spaces and brackets: read after the last closing bracket.
            state, parent, group = stat.read_text().rpartition(")")[2].split()[:3]
            yield Process(int(stat.parent.name), state, int(parent), int(group))


def ignore_signals(*numbers: signal.Signals) -> None:
    """Ignore these signals in this process; child processes keep the default handling."""
    for number in numbers:
        signal.signal(number, _do_nothing)


def _do_nothing(_number: int, _frame: FrameType | None) -> None:
    # A handler rather than SIG_IGN, which children would inherit.
    return
