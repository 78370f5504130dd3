"""Reading and writing the user's files; failures carry the right error."""

from __future__ import annotations

import os
from pathlib import Path

from intloom.common.atomic_write import atomic_path, check_output_path, write_bytes, write_text
from intloom.common.errors import FileFormatError, UsageError

__all__ = ["atomic_path", "check_folder", "check_output", "read_bytes", "write_bytes", "write_text"]


def check_output(target: Path, *inputs: Path) -> None:
    """Refuses a path at which no file can be written, and one whose file is also read; call it before any work.

    Raises
    ------
    UsageError
        `target` is a folder, a device or a pipe, or the same file as one of `inputs`.
    """
    check_output_path(target)
    for source in inputs:
        if os.path.realpath(source) == os.path.realpath(target):
            raise UsageError(f"output must be another file than the input {source}: name a new one")


def check_folder(folder: Path, what: str) -> None:
    """Refuses a path at which there is something else than a folder; `what` says what it is for.

    Raises
    ------
    UsageError
        `folder` is a file.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{what} must be a folder, but {folder} is a file")


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
