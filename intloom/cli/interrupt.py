"""Ctrl-C ends every command within two seconds, even while a library computes and does not listen."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from intloom.common.errors import ExitCode
from intloom.common.signals import ignore_signals
from intloom.common.temporary_files import remove_tracked

_PATIENCE = 1.0
"""Seconds that a command has to clean up by itself."""
_CHILDREN_PATIENCE = 0.8
"""Seconds that its children have for that. Together they stay below two."""


@dataclass
class Interruption:
    """Whether a command was interrupted.

    What then comes out of it need not be KeyboardInterrupt: an extension module that is just being loaded, for one,
    makes an ImportError of it.
    """

    heard: bool = False

    def hear(self, _number: int, _frame: FrameType | None) -> None:
        """The handler of the first signal. A second one must not cut short the cleaning up, which has an end anyway."""
        self.heard = True
        ignore_signals(signal.SIGINT, signal.SIGTERM)
        raise KeyboardInterrupt


@contextmanager
def prompt_interrupt() -> Iterator[Interruption]:
    """While the block runs, SIGINT and SIGTERM raise KeyboardInterrupt; a block deaf to that is ended from outside."""
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return
    watcher, wake = socket.socketpair()
    wake.setblocking(False)
    before = signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    handlers = {n: signal.signal(n, interruption.hear) for n in (signal.SIGINT, signal.SIGTERM)}
    finished = threading.Event()
    threading.Thread(target=_watch, args=(watcher, finished), daemon=True).start()
    try:
        yield interruption
    finally:
        finished.set()
        signal.set_wakeup_fd(before)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        wake.close()


def _watch(watcher: socket.socket, finished: threading.Event) -> None:
    # The interpreter writes each signal's number here at once, long before Python code may run in the main thread.
    while data := watcher.recv(16):
        if {signal.SIGINT, signal.SIGTERM} & set(data):
            if not finished.wait(_PATIENCE):
                end_children()
                remove_tracked()
                os.write(2, b"intloom: interrupted\n")
                os._exit(ExitCode.INTERRUPTED)
            return


def end_children() -> None:
    """Ends every descendant of this process."""
    family = _descendants(os.getpid())
    for number in family:
        _signal(number, signal.SIGTERM)
    deadline = time.monotonic() + _CHILDREN_PATIENCE
    while time.monotonic() < deadline and any(_is_ending(n) for n in family):
        time.sleep(0.02)
    for number in family:
        _signal(number, signal.SIGKILL)


def _is_ending(number: int) -> bool:
    """Whether a process lives and has heard SIGTERM; multiprocessing's own helper, for one, is deaf to it."""
    try:
        lines = Path(f"/proc/{number}/status").read_text().splitlines()
    except OSError:
        return False
    fields = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    deaf = int(fields["SigIgn"], 16) >> (signal.SIGTERM - 1) & 1
    return not deaf and not fields["State"].startswith("Z")


def _signal(number: int, kind: signal.Signals) -> None:
    try:
        os.kill(number, kind)
    except ProcessLookupError:
        return


def _descendants(parent: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The second field, the name, may hold spaces and brackets: read behind its closing one.
            of = int(stat.read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            continue
        children.setdefault(of, []).append(int(stat.parent.name))
    found: list[int] = []
    frontier = [parent]
    while frontier:
        fresh = children.get(frontier.pop(), [])
        found += fresh
        frontier += fresh
    return found
