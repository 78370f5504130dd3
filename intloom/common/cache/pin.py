"""Cache entries in use.

A process that uses an entry holds a shared lock on it until it ends, however it ends; who empties the cache passes over
entries that another process holds.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path

_pinned: dict[Path, int] = {}


def pin(path: Path) -> bool:
    """Keeps a file or folder from being removed by `remove_unpinned` while this process lives; False if it is gone."""
    if path in _pinned and path.exists():
        return True
    unpin(path)
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    fcntl.flock(handle, fcntl.LOCK_SH)
    if not _is_open(path, handle):
        # It was removed while we waited for the lock.
        os.close(handle)
        return False
    _pinned[path] = handle
    return True


def _is_open(path: Path, handle: int) -> bool:
    """Whether `path` still refers to the opened file."""
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def unpin(path: Path) -> None:
    """Gives up what `pin` took."""
    handle = _pinned.pop(path, None)
    if handle is not None:
        os.close(handle)


def remove_unpinned(path: Path) -> bool:
    """Removes a file or folder that no other process holds; says whether it is gone."""
    unpin(path)
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    except BlockingIOError:
        return False
    finally:
        os.close(handle)
    return not path.exists()
