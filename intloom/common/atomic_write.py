"""Atomic file writes: a file appears complete or not at all."""

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from intloom.common.errors import DiskError, UsageError
from intloom.common.temporary_files import tracked

_MODE = 0o644
"""Permissions of a finished file; temporary files have 0600."""
_NAME_LENGTH = 200
"""Characters of the final name in the temporary name: Linux allows names of 255 bytes."""
_PROBE_BYTES = 1


def check_output_path(path: Path) -> None:
    """Check that a path can be written as a file, before the work for it starts.

    Raises
    ------
    UsageError
        It is a folder, a device or a pipe.
    """
    if path.is_dir():
        raise UsageError(f"output must be a file, not the folder {path}: name a file in it")
    # As root, the final rename would replace /dev/null by a plain file.
    if path.exists() and not path.is_file():
        raise UsageError(f"output must be a file, not the device or pipe {path}: name a file")


def check_writable(folder: Path, output: Path) -> None:
    """Check that `folder` can be written, or created, before the work for `output`, which is the folder or in it.

    Raises
    ------
    DiskError
        No permission, no space, a read-only file system, or a file where a folder is needed.
    """
    existing = folder.absolute()
    while not existing.exists():
        existing = existing.parent
    try:
        # A file without a name (O_TMPFILE): a process that is killed here leaves nothing. Permission bits alone do not
        # tell whether the file system is full or read-only.
        with tempfile.TemporaryFile(dir=existing) as probe:
            probe.write(bytes(_PROBE_BYTES))
            probe.flush()
    except OSError as error:
        raise DiskError(f"cannot write {output}: {error.strerror}; free space or choose another path") from None


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """A temporary path beside `path`: renamed to `path` if the block succeeds, removed otherwise.

    Missing folders are created. If `path` is a symbolic link, its target is written.

    Raises
    ------
    UsageError
        `path` is a folder, a device or a pipe.
    DiskError
        The folder cannot be made or the file cannot be written: no space, no permission.
    """
    check_output_path(path)
    final = Path(os.path.realpath(path))
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        with tracked(
            final.with_name(f".{final.name[:_NAME_LENGTH]}.{secrets.token_hex(6)}{final.suffix}")
        ) as temporary:
            try:
                os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
                yield temporary
                temporary.chmod(_MODE)
                temporary.replace(final)
            finally:
                temporary.unlink(missing_ok=True)
    except OSError as error:
        raise DiskError(f"cannot write {path}: {error.strerror or error}; free space or choose another path") from error


def write_bytes(path: Path, data: bytes) -> None:
    """Write a whole file atomically; see `atomic_path`."""
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        file.write(data)
        file.flush()


def write_text(path: Path, text: str) -> None:
    """Write a whole UTF-8 file atomically; see `atomic_path`."""
    write_bytes(path, text.encode("utf-8"))
