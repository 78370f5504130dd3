"""A process that runs cases for a regression on this machine."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

from intloom.common.signals import ignore_signals
from intloom.sim.regress.case import Case, CaseResult, Tools
from intloom.sim.regress.execute import execute


def clean_up_when_ended() -> None:
    """Whoever ends this process from outside lets its blocks remove their temporary files first.

    It hears that once and is then left in peace: an interrupt at the terminal is its parent's to pass on, and the pool
    ends the rest of its workers anew when the first is gone.
    """
    ignore_signals(signal.SIGINT)
    signal.signal(signal.SIGTERM, _end)


def _end(number: int, _frame: FrameType | None) -> None:
    ignore_signals(signal.SIGTERM)
    sys.exit(128 + number)


def execute_or_end(case: Case, tools: Tools) -> CaseResult:
    """One case; the process ends when it is told to: the pool would make a result of that and go on."""
    try:
        return execute(case, tools)
    except SystemExit as end:
        os._exit(int(end.code or 0))
