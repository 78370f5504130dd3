"""Locks on cache entries in use.

A process pins an entry with a shared file lock, which the kernel releases when the process ends. An entry that another
process has pinned is not removed.
"""

import fcntl
import os
import shutil
from pathlib import Path

_pinned: dict[Path, int] = {}


def pin(path: Path) -> bool:
    """Protect a file or folder from `remove_unpinned` until this process ends; False if it does not exist."""
    if path in _pinned and path.exists():
        return True
    unpin(path)
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    fcntl.flock(handle, fcntl.LOCK_SH)
    if not _is_open(path, handle):
        # Another process removed it while this one waited for the lock.
        os.close(handle)
        return False
    _pinned[path] = handle
    return True


def _is_open(path: Path, handle: int) -> bool:
    """Whether `path` still names the file that was opened."""
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def unpin(path: Path) -> None:
    """Release the lock that `pin` took."""
    handle = _pinned.pop(path, None)
    if handle is not None:
        os.close(handle)


def remove_unpinned(path: Path) -> bool:
    """Remove a file or folder that no other process has pinned; return whether it is gone."""
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
