"""The cache folder."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

from intloom.common.errors import DiskError


def cache_folder() -> Path:
    """The folder of all cache entries: $INTLOOM_CACHE, else the user's cache folder; created if it is missing."""
    chosen = os.environ.get("INTLOOM_CACHE")
    folder = Path(chosen) if chosen else Path(platformdirs.user_cache_dir("intloom"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DiskError(
            f"cannot make the cache folder {folder}: {error.strerror}; set INTLOOM_CACHE to another"
        ) from None
    return folder
