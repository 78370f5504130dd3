"""Signals that a process ignores without affecting its children."""

import signal
from types import FrameType


def ignore_signals(*numbers: signal.Signals) -> None:
    """Ignore these signals in this process; child processes keep the default handling."""
    for number in numbers:
        signal.signal(number, _do_nothing)


def _do_nothing(_number: int, _frame: FrameType | None) -> None:
    # A handler rather than SIG_IGN, which children would inherit.
    return
