"""Lists and clears the cache. Entries that another process is making or has pinned stay."""

import contextlib
from dataclasses import dataclass
from pathlib import Path

import filelock

from intloom.common.cache.pin import remove_unpinned
from intloom.common.cache.store import Kind, read_record


@dataclass(frozen=True)
class Item:
    """One entry, or the incomplete entry of a killed process."""

    kind: Kind
    name: str
    detail: str
    path: Path
    size: int
    used: float
    """When it was made or last used, in seconds since 1970."""
    finished: bool = True


@dataclass(frozen=True)
class Cleared:
    """Result of `clear`."""

    entries: int
    bytes: int
    in_use: int
    """Entries that stay because another process makes or uses them."""


def items(home: Path) -> list[Item]:
    """Everything in the cache folder `home`, kind by kind; other files are left out."""
    found = ((kind, path) for kind in Kind for path in sorted(kind.folder(home).glob("*")))
    return [item for kind, path in found if (item := _item(kind, path)) is not None]


def _item(kind: Kind, path: Path) -> Item | None:
    record, finished = read_record(path), not path.name.startswith(".")
    if finished and record is None:
        return None
    size = used = 0.0
    # Files may vanish while they are counted.
    with contextlib.suppress(OSError):
        used = path.stat().st_mtime
        size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    detail = record.detail if record is not None and finished else "unfinished"
    return Item(kind, path.name[:12], detail, path, int(size), used, finished)


def clear(home: Path, kinds: frozenset[Kind] = frozenset(Kind)) -> Cleared:
    """Remove all unpinned entries of these kinds; no other file is touched."""
    count = freed = in_use = 0
    for item in items(home):
        if item.kind not in kinds:
            continue
        if _removed(item):
            count += item.finished
            freed += item.size
        else:
            in_use += 1
    return Cleared(count, freed, in_use)


def _removed(item: Item) -> bool:
    """Remove an entry, unless a process makes it or has pinned it; return whether it is gone."""
    name = item.path.name
    # Work on an entry goes on in a folder `.key.random`.
    key = name if item.finished else name[1:].rpartition(".")[0]
    try:
        with filelock.FileLock(item.path.with_name(f"{key}.lock"), timeout=0):
            return remove_unpinned(item.path)
    except filelock.Timeout:
        return False
