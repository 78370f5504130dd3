"""Writing and reading files so that nobody ever sees half of one, and failures carry the right error."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hw.spec.errors import DiskError, FileFormatError


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` that becomes `path` when the block ends well, and vanishes otherwise.

    Raises
    ------
    DiskError
        The folder cannot be made or the file cannot be written: no space, no permission.
    """
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=path.suffix, dir=path.parent)
        os.close(handle)
        temporary = Path(name)
        yield temporary
        temporary.chmod(0o644)
        temporary.replace(path)
        temporary = None
    except OSError as error:
        raise DiskError(
            f"cannot write {path}: {error.strerror or error}; free space or choose another place"
        ) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def write_bytes(path: Path, data: bytes) -> None:
    """Writes a whole file at once; see `atomic_path`."""
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        file.write(data)
        file.flush()


def write_text(path: Path, text: str) -> None:
    """Writes a whole UTF-8 file at once; see `atomic_path`."""
    write_bytes(path, text.encode("utf-8"))


def read_bytes(path: Path, what: str) -> bytes:
    """The bytes of a file; `what` names its kind in the error.

    Raises
    ------
    FileFormatError
        It does not exist, is a folder or may not be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise FileFormatError(f"cannot read {what} {path}: {error.strerror or error}") from None
