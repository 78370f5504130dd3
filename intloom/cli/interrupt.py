"""Ctrl-C ends every command within two seconds, even while library code blocks signal handlers."""

import os
import signal
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn

from intloom.common.errors import ExitCode
from intloom.common.signals import ignore_signals, processes
from intloom.common.temporary_files import remove_abandoned, remove_tracked

_PATIENCE = 1.0
"""Seconds that a command has to clean up."""
_CHILDREN_PATIENCE = 0.7
"""Seconds that its child processes have to clean up."""
_KILLED_PATIENCE = 0.2
"""Seconds in which killed ones end. All three together are below two seconds."""


@dataclass
class Interruption:
    """Whether a command was interrupted: library code may convert the KeyboardInterrupt into another exception."""

    received: bool = False

    def receive(self, _number: int, frame: FrameType | None) -> None:
        """Handler of the first signal. Further signals are ignored, because cleaning up has a time limit."""
        self.received = True
        ignore_signals(signal.SIGINT, signal.SIGTERM)
        if _is_importing(frame):
            # An extension module can crash when the exception passes through its initialization.
            _end_process()
        raise KeyboardInterrupt


@contextmanager
def prompt_interrupt() -> Iterator[Interruption]:
    """While the block runs, SIGINT and SIGTERM raise KeyboardInterrupt; a thread ends a process that does not react."""
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return
    watcher, wake = socket.socketpair()
    wake.setblocking(False)
    before = signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    handlers = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
    finished, ending = threading.Event(), threading.Event()
    thread = threading.Thread(target=_watch, args=(watcher, finished, ending), daemon=True)
    thread.start()
    try:
        for number in handlers:
            signal.signal(number, interruption.receive)
        yield interruption
    finally:
        finished.set()
        if ending.is_set():
            # It ends this process when it has removed what children left.
            thread.join()
        signal.set_wakeup_fd(before)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        wake.close()


def _watch(watcher: socket.socket, finished: threading.Event, ending: threading.Event) -> None:
    # The interpreter writes the signal number to this socket at once; handlers run later, in the main thread.
    while data := watcher.recv(16):
        if {signal.SIGINT, signal.SIGTERM} & set(data):
            if not finished.wait(_PATIENCE):
                ending.set()
                _end_process()
            return


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _end_process() -> NoReturn:
    end_children()
    remove_tracked()
    # What a child had no time to remove.
    remove_abandoned()
    os.write(2, b"intloom: interrupted\n")
    os._exit(ExitCode.INTERRUPTED)


def end_children() -> None:
    """End every descendant of this process."""
    family = _descendants(os.getpid())
    for number in family:
        _signal(number, signal.SIGTERM)
    _wait_for(family, _CHILDREN_PATIENCE)
    for number in family:
        _signal(number, signal.SIGKILL)
    # A killed process may still complete a system call that makes a file, and holds its locks until it has ended.
    _wait_for(family, _KILLED_PATIENCE)


def _wait_for(family: Iterable[int], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and any(_is_ending(n) for n in family):
        time.sleep(0.02)


def _is_ending(number: int) -> bool:
    """Whether a process runs and does not ignore SIGTERM, as multiprocessing's resource tracker does."""
    try:
        lines = Path(f"/proc/{number}/status").read_text().splitlines()
    except OSError:
        return False
    fields = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    ignores = int(fields["SigIgn"], 16) >> (signal.SIGTERM - 1) & 1
    return not ignores and not fields["State"].startswith("Z")


def _signal(number: int, kind: signal.Signals) -> None:
    try:
        os.kill(number, kind)
    except ProcessLookupError:
        return


def _descendants(parent: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for process in processes():
        children.setdefault(process.parent, []).append(process.number)
    found: list[int] = []
    frontier = [parent]
    while frontier:
        fresh = children.get(frontier.pop(), [])
        found += fresh
        frontier += fresh
    return found
