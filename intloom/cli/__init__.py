"""Command line: one module per subcommand; `intloom.cli.entry` converts errors into exit codes."""

import gc
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; None stands for the arguments of the process."""
    if arguments is None:
        # While libraries load, exit at once: a KeyboardInterrupt can crash an extension module that is being imported.
        signal.signal(signal.SIGINT, _leave_at_once)
    from intloom.cli.entry import run

    code = run(arguments)
    if arguments is None:
        # The command is complete: an interrupt during interpreter shutdown would only change the exit code.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        # Else the interpreter looks for reference cycles among all objects once more as it ends.
        gc.freeze()
        if code == _INTERRUPTED:
            # Skip interpreter shutdown, which can crash in a library that the interrupt stopped halfway.
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
