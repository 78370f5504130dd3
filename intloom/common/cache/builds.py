"""Cache entries that take long to build: a folder with one file and its checksum.

An entry is built in a temporary folder under a file lock and appears by one rename. So processes may build the same
entry at once, and a killed build leaves no incomplete entry.
"""

import hashlib
import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import filelock

from intloom.common.cache.pin import pin, remove_unpinned, unpin
from intloom.common.cache_folder import cache_folder
from intloom.common.temporary_files import temporary_folder

_log = logging.getLogger(__name__)
_CHECKSUM_SUFFIX = ".sha256"
_KEEP = 64
"""Least recently used entries beyond this number are removed."""


def cached_build(key: str, name: str, make: Callable[[Path, Path], Path]) -> tuple[Path, bool]:
    """The file of the entry `key`, pinned, and whether it was in the cache.

    Parameters
    ----------
    key
        Hash of everything that the file depends on.
    name
        Name of the file in the entry.
    make
        Builds the file in a work folder, writes a log file, and returns the path of what it built.
    """
    home = cache_folder() / "builds"
    home.mkdir(exist_ok=True)
    folder = home / key
    with filelock.FileLock(home / f"{key}.lock"):
        if _intact(folder, name) and pin(folder):
            os.utime(folder)
            return folder / name, True
        for stale in home.glob(f".{key}.*"):
            # The process that made it was killed: a living one would hold the file lock.
            shutil.rmtree(stale, ignore_errors=True)
        with temporary_folder(f".{key}.", home) as work:
            ready = work / "ready"
            ready.mkdir()
            shutil.move(make(work, ready / "build.log"), ready / name)
            (ready / f"{name}{_CHECKSUM_SUFFIX}").write_text(_checksum(ready / name), encoding="utf-8")
            ready.rename(folder)
        pin(folder)
    _remove_oldest(home, name)
    return folder / name, False


def recorded(folder: Path) -> tuple[Path, str] | None:
    """The file of a finished entry and the checksum that was recorded for it; None without such a record."""
    for record in folder.glob(f"*{_CHECKSUM_SUFFIX}"):
        return record.with_suffix(""), record.read_text(encoding="utf-8")
    return None


def _intact(folder: Path, name: str) -> bool:
    """Whether the entry exists with the right checksum; one that was altered or truncated is removed."""
    if not folder.exists():
        return False
    try:
        if recorded(folder) == (folder / name, _checksum(folder / name)):
            return True
    except (OSError, UnicodeDecodeError):
        pass
    _log.warning("%s %s was altered; it is built again", name, folder.name)
    unpin(folder)
    shutil.rmtree(folder)
    return False


def _checksum(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _remove_oldest(home: Path, name: str) -> None:
    entries = sorted((p for p in home.iterdir() if (p / name).exists()), key=lambda p: p.stat().st_mtime, reverse=True)
    for old in entries[_KEEP:]:
        remove_unpinned(old)
