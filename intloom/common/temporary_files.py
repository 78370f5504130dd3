"""Temporary files and folders, tracked so that they can be removed when the process is terminated."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_tracked: set[Path] = set()


@contextmanager
def tracked(path: Path) -> Iterator[Path]:
    """Within the block, `remove_tracked` removes this file or folder; otherwise the caller removes it."""
    _tracked.add(path)
    try:
        yield path
    finally:
        _tracked.discard(path)


@contextmanager
def temporary_folder(prefix: str = "intloom-", parent: Path | None = None) -> Iterator[Path]:
    """A temporary folder, removed after the block."""
    with tempfile.TemporaryDirectory(prefix=prefix, dir=parent) as name, tracked(Path(name)) as folder:
        yield folder


def remove_tracked() -> None:
    """Remove all tracked files and folders; call it only right before the process ends."""
    for path in list(_tracked):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
