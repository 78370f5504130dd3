"""The command line: one short file per subcommand, errors caught in one place."""

from __future__ import annotations

import sys
from collections.abc import Sequence

_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; gives its exit code."""
    try:
        # Loading libraries takes long enough for an impatient user to press Ctrl-C.
        from .entry import run
    except KeyboardInterrupt:
        sys.stderr.write("intloom: interrupted\n")
        return _INTERRUPTED
    return run(arguments)


__all__ = ["main"]
