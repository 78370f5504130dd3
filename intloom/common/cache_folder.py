"""The cache folder."""

import os
import stat
from pathlib import Path

from intloom.common.errors import DiskError

TAG = "CACHEDIR.TAG"
"""Marks a folder as a cache, for backup programs too: https://bford.info/cachedir/."""
_TAG_TEXT = "Signature: 8a477f597d28d172789f06886806bc55\n# This folder is a cache of Intloom.\n"


def cache_folder() -> Path:
    """The folder of all cache entries: $INTLOOM_CACHE, else the user's cache folder; created if it is missing.

    Raises
    ------
    DiskError
        The folder cannot be made, holds other files, or can be written by other users, whose simulators would run with
        the rights of this one.
    """
    chosen = os.environ.get("INTLOOM_CACHE")
    try:
        user = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
        folder = Path(chosen) if chosen else user.expanduser() / "intloom"
        folder.mkdir(parents=True, exist_ok=True)
        _check_owner(folder)
        _tag(folder, adopt=not chosen)
    except (OSError, RuntimeError) as error:
        # RuntimeError: the user has no home folder.
        reason = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)
        raise DiskError(f"cannot make the cache folder, {reason}; set INTLOOM_CACHE to another") from None
    return folder


def _check_owner(folder: Path) -> None:
    # Entries are programs that run, and their checksums are beside them: who can write here can replace both.
    status = folder.stat()
    if status.st_uid != os.geteuid():
        raise DiskError(f"cache folder {folder} must belong to the user who runs Intloom; set INTLOOM_CACHE to another")
    if status.st_mode & stat.S_IWOTH:
        raise DiskError(f"cache folder {folder} must not be writable by all users; run chmod o-w, and empty it")


def _tag(folder: Path, *, adopt: bool) -> None:
    """Mark the folder as a cache. One that the user names must be empty then: a cache is cleared as a whole."""
    tag = folder / TAG
    if tag.exists():
        return
    # The tag is looked for again: another process may have made the cache since.
    if not adopt and any(folder.iterdir()) and not tag.exists():
        raise DiskError(f"cache folder {folder} must be empty or a cache of Intloom with the file {TAG}; name another")
    tag.write_text(_TAG_TEXT, encoding="utf-8")
