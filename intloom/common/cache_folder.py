"""The cache folder."""

from __future__ import annotations

import os
from pathlib import Path

from intloom.common.errors import DiskError


def cache_folder() -> Path:
    """The folder of all cache entries: $INTLOOM_CACHE, else the user's cache folder; created if it is missing."""
    chosen = os.environ.get("INTLOOM_CACHE")
    try:
        user = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
        folder = Path(chosen) if chosen else user.expanduser() / "intloom"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:
        # RuntimeError: the user has no home folder.
        reason = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)
        raise DiskError(f"cannot make the cache folder, {reason}; set INTLOOM_CACHE to another") from None
    return folder
