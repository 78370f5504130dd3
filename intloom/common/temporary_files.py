"""Temporary files and folders that go with their block, also if the process is terminated or killed.

Before a temporary file is created, its path is noted in a file of the cache folder. The process holds a lock on the
note, which the kernel releases when the process ends. The next command removes the files of all notes without a lock.
"""

import contextlib
import fcntl
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from intloom.common.cache_folder import cache_folder
from intloom.common.errors import DiskError

_tracked: set[Path] = set()
_LEAST_BYTES = 1 << 16
"""Free space of the temporary folder below which no command can work."""


@contextmanager
def tracked(path: Path) -> Iterator[Path]:
    """Within the block, `remove_tracked` removes this file or folder.

    If the process is killed, the next command removes it. The caller removes or renames it before the block ends.
    """
    _tracked.add(path)
    note = _take_note(path)
    try:
        yield path
    finally:
        _tracked.discard(path)
        if note is not None:
            note[0].unlink(missing_ok=True)
            os.close(note[1])


@contextmanager
def temporary_folder(prefix: str = "intloom-", parent: Path | None = None) -> Iterator[Path]:
    """A temporary folder, removed at the end of the block."""
    home = Path(tempfile.gettempdir()) if parent is None else parent
    with tracked(home / f"{prefix}{secrets.token_hex(6)}") as folder:
        folder.mkdir(mode=0o700)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def check_temporary_space(needed: int = 0) -> None:
    """Check that temporary files of `needed` bytes in total can be written, before the work for them starts.

    Raises
    ------
    DiskError
        The folder named by TMPDIR cannot be written, or the space is too small.
    """
    chosen = os.environ.get("TMPDIR")
    try:
        folder = tempfile.gettempdir()
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise DiskError(
            f"no folder for temporary files can be written: {error.strerror}; set TMPDIR to another folder"
        ) from None
    # Python silently uses another folder if that one cannot be written.
    if chosen and os.path.realpath(chosen) != os.path.realpath(folder):
        raise DiskError(f"cannot write to TMPDIR={chosen}; free space or set TMPDIR to another folder")
    if free < (least := max(needed, _LEAST_BYTES)):
        raise DiskError(
            f"temporary files need {least / 1e6:.1f} MB, but {folder} has {free / 1e6:.1f} MB free; free space or set "
            "TMPDIR to another folder"
        )


def remove_tracked() -> None:
    """Remove all tracked files and folders; call it only right before the process ends."""
    for path in list(_tracked):
        _remove(path)


def remove_abandoned() -> None:
    """Remove the temporary files of processes that were killed."""
    with contextlib.suppress(OSError, DiskError), _locked_notes(fcntl.LOCK_EX | fcntl.LOCK_NB) as home:
        for note in list(home.iterdir()):
            _remove_noted(note)


def _take_note(path: Path) -> tuple[Path, int] | None:
    """A locked note of `path`: its file and handle; None where the cache folder cannot be written."""
    try:
        with _locked_notes(fcntl.LOCK_SH) as home:
            note = home / secrets.token_hex(8)
            handle = os.open(note, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            fcntl.flock(handle, fcntl.LOCK_EX)
            try:
                os.write(handle, os.fsencode(path.absolute()))
            except OSError:
                note.unlink()
                os.close(handle)
                raise
            return note, handle
    except (OSError, DiskError):
        return None


@contextmanager
def _locked_notes(kind: int) -> Iterator[Path]:
    """The folder of notes under a lock, so that no process sees a note before its owner has locked it."""
    home = cache_folder() / "temporary"
    home.mkdir(exist_ok=True)
    handle = os.open(home, os.O_RDONLY)
    try:
        fcntl.flock(handle, kind)
        yield home
    finally:
        os.close(handle)


def _remove_noted(note: Path) -> None:
    """Remove a note and its file or folder, unless the note's process is running."""
    handle = os.open(note, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path = Path(os.fsdecode(note.read_bytes()))
        if path.is_absolute():
            _remove(path)
        note.unlink()
    except BlockingIOError:
        pass
    finally:
        os.close(handle)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
