"""The command line: one short file per subcommand, errors caught in one place."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; gives its exit code. Without arguments it is the process's own command line."""
    if arguments is None:
        # While libraries load nothing is at stake, and an exception in the middle of that may crash them.
        signal.signal(signal.SIGINT, _leave_at_once)
    from intloom.cli.entry import run

    code = run(arguments)
    if arguments is None:
        # All is done and said; while Python tears its libraries down an interrupt could only spoil the exit code.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if code == _INTERRUPTED:
            # Python may crash if the interrupt met a library that it must still tear down.
            _leave(quietly=True)
    return code


def _leave_at_once(_number: int, _frame: FrameType | None) -> None:
    _leave(quietly=False)


def _leave(*, quietly: bool) -> None:
    if not quietly:
        os.write(2, b"intloom: interrupted\n")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(_INTERRUPTED)


__all__ = ["main"]
