"""Lists and clears the cache: models, Verilog, simulators and their library, results.

Entries that another process is making or has pinned stay.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import filelock

from intloom.common.cache.models import ModelCache
from intloom.common.cache.pin import remove_unpinned

_STALE_SECONDS = 3600
"""A temporary file older than this is stale: its writer was killed."""


class Kind(StrEnum):
    """What an entry is."""

    MODEL = "model"
    VERILOG = "verilog"
    SIMULATOR = "simulator"
    LIBRARY = "library"
    RESULT = "result"
    FORECAST = "forecast"

    @property
    def plural(self) -> str:
        """The word for several entries of this kind."""
        return {Kind.VERILOG: "verilog", Kind.LIBRARY: "libraries"}.get(self, f"{self}s")


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
    """Everything in the cache folder `home`, kind by kind."""
    return [*_models(ModelCache(home / "models")), *_texts(home), *_builds(home), *_results(home)]


def clear(home: Path, kinds: frozenset[Kind] = frozenset(Kind)) -> Cleared:
    """Remove all unpinned entries of these kinds; no other file is touched."""
    count = freed = in_use = 0
    for item in items(home):
        if item.kind not in kinds:
            continue
        if _REMOVERS[item.kind](item):
            count += item.finished
            freed += item.size
        else:
            in_use += 1
    return Cleared(count, freed, in_use)


def _models(cache: ModelCache) -> Iterator[Item]:
    for r in cache.records():
        options = " ".join(f"{k}={v}" for k, v in r.options.items())
        detail = f"{r.step} {options}, {r.seconds:.1f} s to make"
        yield _item(Kind.MODEL, r.key[:12], detail, cache.folder / r.key)
    for path in cache.unfinished():
        yield _item(Kind.MODEL, path.name, "unfinished", path, finished=False)


def _texts(home: Path) -> Iterator[Item]:
    for kind, pattern, what in (
        (Kind.VERILOG, "verilog/*.v", "an accelerator"),
        (Kind.FORECAST, "forecasts/*.json", "a model on an accelerator"),
    ):
        for path in sorted(home.glob(pattern)):
            yield _item(kind, path.stem[:12], what, path)


def _builds(home: Path) -> Iterator[Item]:
    for path in sorted((home / "builds").glob("*")):
        if path.is_dir():
            made, _, key = _build_key(path).partition("-")
            finished = not path.name.startswith(".")
            kind, what = (
                (Kind.LIBRARY, "Verilator's library") if made == Kind.LIBRARY else (Kind.SIMULATOR, f"{made} bench")
            )
            yield _item(kind, key[:12], what if finished else "unfinished", path, finished=finished)


def _build_key(path: Path) -> str:
    """A build's key; work goes on in a folder `.key.random`."""
    return path.name[1:].rpartition(".")[0] if path.name.startswith(".") else path.name


def _results(home: Path) -> Iterator[Item]:
    for path in sorted((home / "results").glob("*")):
        finished = path.suffix == ".npz"
        detail = "a simulated block of layers" if finished else "unfinished"
        yield _item(Kind.RESULT, path.name[:12], detail, path, finished=finished)


def _item(kind: Kind, name: str, detail: str, path: Path, *, finished: bool = True) -> Item:
    size = used = 0.0
    # Files may vanish while they are counted.
    with contextlib.suppress(OSError):
        used = path.stat().st_mtime
        for file in [path] if path.is_file() else path.rglob("*"):
            size += file.stat().st_size if file.is_file() else 0
    return Item(kind, name, detail, path, int(size), used, finished)


def _remove_locked(item: Item, key: str) -> bool:
    """Removes what is made under a lock file, unless that lock is taken."""
    try:
        with filelock.FileLock(item.path.parent / f"{key}.lock", timeout=0):
            return remove_unpinned(item.path)
    except filelock.Timeout:
        return False


def _remove_build(item: Item) -> bool:
    return _remove_locked(item, _build_key(item.path))


def _remove_result(item: Item) -> bool:
    if not item.finished and time.time() - item.used < _STALE_SECONDS:
        return False
    return remove_unpinned(item.path)


_REMOVERS: dict[Kind, Callable[[Item], bool]] = {
    Kind.MODEL: lambda item: remove_unpinned(item.path),
    **dict.fromkeys((Kind.VERILOG, Kind.FORECAST), lambda item: _remove_locked(item, item.path.stem.partition("-")[0])),
    Kind.SIMULATOR: _remove_build,
    Kind.LIBRARY: _remove_build,
    Kind.RESULT: _remove_result,
}
