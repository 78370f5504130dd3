"""Temporary files and folders, tracked: they can be removed even when a process has to be ended from outside."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_remembered: set[Path] = set()


@contextmanager
def tracked(path: Path) -> Iterator[Path]:
    """While the block runs, `remove_tracked` removes this file or folder; its maker removes it otherwise."""
    _remembered.add(path)
    try:
        yield path
    finally:
        _remembered.discard(path)


@contextmanager
def temporary_folder(prefix: str = "intloom-", parent: Path | None = None) -> Iterator[Path]:
    """A folder that is gone after the block."""
    with tempfile.TemporaryDirectory(prefix=prefix, dir=parent) as name, tracked(Path(name)) as folder:
        yield folder


def remove_tracked() -> None:
    """Removes what blocks that will never end would have removed; only for a process that ends right after."""
    for path in list(_remembered):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
