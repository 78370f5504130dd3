"""Cache entries that are one text file, named by key and checksum."""

import hashlib
from collections.abc import Callable

import filelock

from intloom.common.atomic_write import write_text
from intloom.common.cache_folder import cache_folder


def cached_text(kind: str, key: str, suffix: str, make: Callable[[], str]) -> str:
    """The text of the entry `key` of a kind, from the cache or made now; an altered entry is replaced."""
    home = cache_folder() / kind
    home.mkdir(exist_ok=True)
    with filelock.FileLock(home / f"{key}.lock"):
        for path in home.glob(f"{key}-*{suffix}"):
            text = path.read_text(encoding="utf-8", errors="replace")
            if path.name == _file_name(key, suffix, text):
                return text
            path.unlink()
        text = make()
        write_text(home / _file_name(key, suffix, text), text)
        return text


def has_text(kind: str, key: str, suffix: str) -> bool:
    """Whether the entry `key` of a kind is in the cache, altered or not."""
    return any((cache_folder() / kind).glob(f"{key}-*{suffix}"))


def _file_name(key: str, suffix: str, text: str) -> str:
    """Key and checksum of the content."""
    return f"{key}-{hashlib.sha256(text.encode()).hexdigest()[:16]}{suffix}"
