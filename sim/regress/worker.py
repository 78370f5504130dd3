"""A process that runs cases for a regression on this machine."""

import os
import signal
import sys
from types import FrameType

from intloom.common.signals import ignore_signals
from intloom.sim.regress.case import Case, CaseResult, Tools
from intloom.sim.regress.execute import execute


def clean_up_when_ended() -> None:
    """Make SIGTERM end this process through its context managers, which remove their temporary files.

    Only the first SIGTERM counts, because the pool sends it again when another worker has ended. SIGINT is ignored: the
    parent receives the interrupt of the terminal and passes it on.
    """
    ignore_signals(signal.SIGINT)
    signal.signal(signal.SIGTERM, _end)


def _end(number: int, _frame: FrameType | None) -> None:
    ignore_signals(signal.SIGTERM)
    sys.exit(128 + number)


def execute_or_end(case: Case, tools: Tools) -> CaseResult:
    """One case; on SIGTERM the process exits, because the pool would turn SystemExit into a result and continue."""
    try:
        return execute(case, tools)
    except SystemExit as end:
        # By now the context managers of `execute` have removed their files.
        os._exit(int(end.code or 0))
