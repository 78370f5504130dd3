"""The persistent cache of prepared models, keyed by everything that their content depends on.

An entry is a folder with the model and a record of how it came about, whose checksum is verified at every use. Entries
appear by one rename, so two processes that make the same one never see half of the other's.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import platformdirs

from hw.spec.errors import DiskError

_log = logging.getLogger(__name__)
_FORMAT = 1
"""Part of every key: entries of another format are never met."""
_RECORD = "record.json"
_MODEL = "model.onnx"
FOLDER_VARIABLE = "INTLOOM_CACHE"


@dataclass(frozen=True)
class Record:
    """What is known about a cache entry."""

    key: str
    source: str
    step: str
    options: Mapping[str, str]
    versions: Mapping[str, str]
    sha256: str
    size: int
    seconds: float
    """Time that making it took, which every later use saves."""


@dataclass(frozen=True)
class Recipe:
    """Everything that a prepared model depends on; its hash is the key."""

    source: str
    """Hash of the source model's whole content."""
    step: str
    options: Mapping[str, str]
    versions: Mapping[str, str]

    @property
    def key(self) -> str:
        """SHA-256 over all fields."""
        text = json.dumps({"format": _FORMAT, **asdict(self)}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def default_folder() -> Path:
    """`models` in the folder named by `INTLOOM_CACHE`, or in the user's cache folder."""
    named = os.environ.get(FOLDER_VARIABLE)
    return (Path(named) if named else Path(platformdirs.user_cache_dir("intloom"))) / "models"


class Cache:
    """A folder of entries."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or default_folder()

    def get(self, recipe: Recipe) -> tuple[Path, Record] | None:
        """The model made by `recipe` and its record, or None; an entry that was altered is removed."""
        entry = self.folder / recipe.key
        if not entry.is_dir():
            return None
        record = _read_record(entry)
        if record is None or not _intact(entry / _MODEL, record):
            _log.warning("cache entry %s was altered; it is made anew", recipe.key[:12])
            shutil.rmtree(entry, ignore_errors=True)
            return None
        return entry / _MODEL, record

    def put(self, recipe: Recipe, model: bytes, seconds: float) -> Path:
        """Stores a model; if another process stored it first, that entry stays."""
        record = Record(
            key=recipe.key, source=recipe.source, step=recipe.step, options=recipe.options, versions=recipe.versions,
            sha256=hashlib.sha256(model).hexdigest(), size=len(model), seconds=seconds,
        )  # fmt: skip
        entry = self.folder / recipe.key
        temporary: Path | None = None
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            temporary = Path(tempfile.mkdtemp(prefix=".making-", dir=self.folder))
            (temporary / _MODEL).write_bytes(model)
            (temporary / _RECORD).write_text(json.dumps(asdict(record), indent=2), encoding="utf-8")
            _rename_once(temporary, entry)
        except OSError as error:
            raise DiskError(
                f"cannot write cache entry in {self.folder}: {error.strerror}; name another with --cache"
            ) from error
        finally:
            if temporary is not None:
                shutil.rmtree(temporary, ignore_errors=True)
        return entry / _MODEL

    def records(self) -> Iterator[Record]:
        """The records of all readable entries, by key."""
        for entry in sorted(self.folder.glob("[0-9a-f]*")):
            if record := _read_record(entry):
                yield record

    def clear(self) -> tuple[int, int]:
        """Removes all entries; gives their number and bytes. Nothing but the cache's own files is touched."""
        count = size = 0
        if not self.folder.is_dir():
            return 0, 0
        for entry in self.folder.iterdir():
            if not (entry / _RECORD).exists() and not entry.name.startswith(".making-"):
                continue
            size += sum(f.stat().st_size for f in entry.iterdir())
            count += not entry.name.startswith(".")
            shutil.rmtree(entry, ignore_errors=True)
        return count, size


def _rename_once(temporary: Path, entry: Path) -> None:
    try:
        temporary.rename(entry)
    except OSError:
        # A folder cannot be renamed onto one that holds files: another process was first, with the same content.
        if not entry.is_dir():
            raise


def _read_record(entry: Path) -> Record | None:
    try:
        return Record(**json.loads((entry / _RECORD).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _intact(model: Path, record: Record) -> bool:
    try:
        return hashlib.sha256(model.read_bytes()).hexdigest() == record.sha256
    except OSError:
        return False
