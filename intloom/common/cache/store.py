"""Cache entries: a folder with one file, its checksum, and what is known of it.

An entry is made in a temporary folder under a file lock and appears by one rename. So processes that need the same
entry at once make it once, and a killed one leaves no incomplete entry. An entry that was altered is made again.
"""

import errno
import hashlib
import json
import logging
import os
import shutil
import time
from collections.abc import Callable, Container, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import filelock

from intloom.common.cache.pin import pin, remove_unpinned, unpin
from intloom.common.cache_folder import cache_folder
from intloom.common.errors import DiskError
from intloom.common.temporary_files import temporary_folder

_log = logging.getLogger(__name__)
_RECORD_SUFFIX = ".sha256"
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Errors of what makes an entry that mean a full disk; others are about what it reads."""
_KEEP = 512
"""Least recently used simulators beyond this number are removed: about one GB, and more than a run of all tests has."""


class Kind(StrEnum):
    """What an entry is."""

    MODEL = "model"
    VERILOG = "verilog"
    SIMULATOR = "simulator"
    LIBRARY = "library"
    PACKAGE = "package"
    RESULT = "result"
    FORECAST = "forecast"

    @property
    def plural(self) -> str:
        """The word for several entries of this kind."""
        return {Kind.VERILOG: "verilog", Kind.LIBRARY: "libraries"}.get(self, f"{self}s")

    def folder(self, home: Path) -> Path:
        """The folder of the entries of this kind in the cache folder `home`."""
        return home / {Kind.VERILOG: "verilog", Kind.SIMULATOR: "builds"}.get(self, self.plural)


@dataclass(frozen=True)
class Record:
    """What is known of an entry's file."""

    file: Path
    sha256: str
    seconds: float = 0.0
    """Time that making it took, which every later use saves."""
    detail: str = ""
    """What it is, for lists of entries."""

    def intact(self) -> bool:
        """Whether the file has not changed since."""
        try:
            with self.file.open("rb") as content:
                return hashlib.file_digest(content, "sha256").hexdigest() == self.sha256
        except OSError:
            return False


@dataclass(frozen=True)
class Entry:
    """A file in the cache."""

    path: Path
    cached: bool
    """It was there before."""
    seconds: float
    """Time that making it took, now or then."""


def key_of(*parts: object) -> str:
    """A hash of plain values: everything that an entry depends on."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def cached_file(
    kind: Kind, key: str, make: Callable[[Path], Path], *, detail: str = "", home: Path | None = None
) -> Entry:
    """The file of an entry, pinned: no other process removes it before this one ends.

    Parameters
    ----------
    kind, key
        What it is, and a name that changes with everything that it depends on.
    make
        Makes the file in a work folder and returns its path, whose name it keeps.
    detail
        What it is in detail, for lists of entries.
    home
        Another cache folder than the user's.

    Raises
    ------
    DiskError
        The cache cannot be written.
    """
    with _locked_entry(kind, key, make, detail, home) as entry:
        pin(entry.path.parent)
    if kind is Kind.SIMULATOR and not entry.cached:
        _remove_oldest(entry.path.parents[1], entry.path.name)
    return entry


def cached_bytes(
    kind: Kind, key: str, make: Callable[[Path], Path], *, detail: str = "", home: Path | None = None
) -> tuple[bytes, bool]:
    """The content of an entry's file, and whether it was in the cache; see `cached_file`. The entry is not pinned."""
    with _locked_entry(kind, key, make, detail, home) as entry:
        return entry.path.read_bytes(), entry.cached


def cached_text(kind: Kind, key: str, name: str, make: Callable[[], str], *, detail: str = "") -> str:
    """The text of an entry, whose file is called `name`; see `cached_bytes`."""

    def write(work: Path) -> Path:
        (work / name).write_text(make(), encoding="utf-8")
        return work / name

    return cached_bytes(kind, key, write, detail=detail)[0].decode()


@contextmanager
def _locked_entry(
    kind: Kind, key: str, make: Callable[[Path], Path], detail: str, home: Path | None
) -> Iterator[Entry]:
    """An intact entry, found or made, under its lock."""
    folder = kind.folder(home or cache_folder())
    entry = folder / key
    with ExitStack() as held:
        with _disk_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            held.enter_context(filelock.FileLock(folder / f"{key}.lock"))
        record = _intact_record(entry)
        if record is not None:
            os.utime(entry)
            yield Entry(record.file, True, record.seconds)
            return
        for stale in folder.glob(f".{key}.*"):
            # The process that made it was killed: a living one would hold the lock.
            shutil.rmtree(stale, ignore_errors=True)
        with temporary_folder(f".{key}.", folder) as work:
            started = time.perf_counter()
            with _disk_errors(folder, _FULL):
                made = make(work)
            seconds = time.perf_counter() - started
            with _disk_errors(folder):
                (ready := work / "entry").mkdir()
                shutil.move(made, ready)
                _write_record(ready / made.name, seconds, detail)
                ready.rename(entry)
        yield Entry(entry / made.name, False, seconds)


@contextmanager
def _disk_errors(folder: Path, numbers: Container[int | None] | None = None) -> Iterator[None]:
    """Make errors of the operating system, or only those with these numbers, errors of the disk."""
    try:
        yield
    except OSError as error:
        if numbers is not None and error.errno not in numbers:
            raise
        remedy = "name another with INTLOOM_CACHE or --cache"
        raise DiskError(f"cannot write the cache in {folder}: {error.strerror}; {remedy}") from error


def _write_record(file: Path, seconds: float, detail: str) -> None:
    with file.open("rb") as content:
        sha256 = hashlib.file_digest(content, "sha256").hexdigest()
    file.with_name(f"{file.name}{_RECORD_SUFFIX}").write_text(f"{sha256} {seconds:.3f} {detail}", encoding="utf-8")


def read_record(entry: Path) -> Record | None:
    """The record of a finished entry; None where there is none, or one that was altered."""
    # Another process may remove the entry meanwhile.
    try:
        for path in entry.glob(f"*{_RECORD_SUFFIX}"):
            sha256, seconds, detail = (*path.read_text(encoding="utf-8").split(" ", 2), "0", "")[:3]
            return Record(path.with_suffix(""), sha256, float(seconds), detail)
    except (OSError, ValueError):
        return None
    return None


def _intact_record(entry: Path) -> Record | None:
    """The record of an entry with the right checksum; any other entry is removed."""
    if not entry.exists():
        return None
    record = read_record(entry)
    if record is not None and record.intact():
        return record
    _log.warning("cache entry %s was altered; it is made again", entry.name)
    unpin(entry)
    shutil.rmtree(entry)
    return None


def _remove_oldest(home: Path, name: str) -> None:
    entries = sorted((p for p in home.iterdir() if (p / name).exists()), key=lambda p: p.stat().st_mtime, reverse=True)
    for old in entries[_KEEP:]:
        remove_unpinned(old)
