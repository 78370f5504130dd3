"""Signals that a process has heard often enough."""

from __future__ import annotations

import signal
from types import FrameType


def ignore_signals(*numbers: signal.Signals) -> None:
    """From now on these signals change nothing here; processes that are started later still heed them."""
    for number in numbers:
        signal.signal(number, _stay)


def _stay(_number: int, _frame: FrameType | None) -> None:
    # A handler rather than SIG_IGN, which children would inherit.
    return
