"""The persistent cache of prepared models, keyed by everything that their content depends on.

An entry is a folder with the model and a record of how it came about, whose checksum is verified at every use. Entries
appear by one rename, so two processes that make the same one never see half of the other's.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from intloom.common.cache.pin import pin, unpin
from intloom.common.errors import DiskError
from intloom.common.temporary_files import tracked
from intloom.sim.rtl.build import cache_folder

_log = logging.getLogger(__name__)
_FORMAT = 1
"""Part of every key: entries of another format are never met."""
_RECORD = "record.json"
_MODEL = "model.onnx"
_MAKING = ".making-"


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
    return cache_folder() / "models"


class Cache:
    """A folder of entries."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or default_folder()

    def get(self, recipe: Recipe) -> tuple[Path, Record] | None:
        """The model made by `recipe` and its record, or None; an entry that was altered is removed."""
        entry = self.folder / recipe.key
        if not entry.is_dir() or not pin(entry):
            return None
        record = _read_record(entry)
        if record is None or not _intact(entry / _MODEL, record):
            _log.warning("cache entry %s was altered; it is made anew", recipe.key[:12])
            unpin(entry)
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
            while temporary is None or not pin(temporary):
                # Until it is held, a new folder may be taken for one whose maker died.
                temporary = Path(tempfile.mkdtemp(prefix=_MAKING, dir=self.folder))
            with tracked(temporary):
                (temporary / _MODEL).write_bytes(model)
                (temporary / _RECORD).write_text(json.dumps(asdict(record), indent=2), encoding="utf-8")
                _install(temporary, entry)
        except OSError as error:
            raise DiskError(
                f"cannot write cache entry in {self.folder}: {error.strerror}; name another with --cache"
            ) from error
        finally:
            if temporary is not None:
                unpin(temporary)
                shutil.rmtree(temporary, ignore_errors=True)
        return entry / _MODEL

    def records(self) -> Iterator[Record]:
        """The records of all readable entries, by key."""
        for entry in sorted(self.folder.glob("[0-9a-f]*")):
            if record := _read_record(entry):
                yield record

    def unfinished(self) -> Iterator[Path]:
        """Folders of entries that are being made, or whose maker died."""
        yield from self.folder.glob(f"{_MAKING}*")


def _install(temporary: Path, entry: Path) -> None:
    """Puts a finished entry in its place and holds it there; another process's, with the same content, is as good."""
    while True:
        try:
            temporary.rename(entry)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        if pin(entry):
            return


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
