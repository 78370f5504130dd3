"""File access that raises project errors."""

import os
from pathlib import Path

from intloom.common.atomic_write import atomic_path, check_output_path, check_writable, write_bytes, write_text
from intloom.common.errors import FileFormatError, UsageError

__all__ = ["atomic_path", "check_folder", "check_output", "read_bytes", "read_prefix", "write_bytes", "write_text"]


def check_output(target: Path, *inputs: Path) -> None:
    """Check before any work that a file can be written to `target` and that it is none of the inputs.

    Raises
    ------
    UsageError
        `target` is a folder, a device or a pipe, or the same file as one of `inputs`.
    DiskError
        The file cannot be written: no space, no permission.
    """
    check_output_path(target)
    for source in inputs:
        if os.path.realpath(source) == os.path.realpath(target):
            raise UsageError(f"output must be another file than the input {source}; choose another name")
    check_writable(Path(os.path.realpath(target)).parent, target)


def check_folder(folder: Path, what: str) -> None:
    """Check that `folder` is a folder that can be written, or can be created; `what` names its purpose in the message.

    Raises
    ------
    UsageError
        `folder` is a file.
    DiskError
        No file can be written in it: no space, no permission.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{what} must be a folder, but {folder} is a file; choose another path")
    check_writable(folder, folder)


def read_prefix(path: Path, size: int, what: str) -> bytes:
    """The first bytes of a file, which tell its format; `what` names its kind in the message.

    Raises
    ------
    FileFormatError
        The file does not exist, is a folder or is not readable.
    """
    try:
        with path.open("rb") as file:
            return file.read(size)
    except OSError as error:
        raise FileFormatError(f"cannot read {what} {path}: {error.strerror or error}") from None


def read_bytes(path: Path, what: str) -> bytes:
    """The bytes of a file; `what` names its kind in the message.

    Raises
    ------
    FileFormatError
        The file does not exist, is a folder or is not readable.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise FileFormatError(f"cannot read {what} {path}: {error.strerror or error}") from None
