"""Cache entries of preprocessed and quantized models.

An entry is a folder with the model and a record of how it was made. Its checksum is verified at every use. An entry
appears by one rename, so a process never reads an incomplete entry of another.
"""

import errno
import hashlib
import json
import logging
import secrets
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from intloom.common.cache.pin import pin, unpin
from intloom.common.cache_folder import cache_folder
from intloom.common.errors import DiskError
from intloom.common.temporary_files import tracked

_log = logging.getLogger(__name__)
_FORMAT = 1
"""Part of every key, so entries of another format are never read."""
_RECORD = "record.json"
_MODEL = "model.onnx"
_MAKING = ".making-"


@dataclass(frozen=True)
class Record:
    """Metadata of a cache entry."""

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


class ModelCache:
    """A folder of model entries."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or default_folder()

    def get(self, recipe: Recipe) -> tuple[Path, Record] | None:
        """The model made by `recipe` and its record, or None; an entry that was altered is removed."""
        entry = self.folder / recipe.key
        if not entry.is_dir() or not pin(entry):
            return None
        record = _read_record(entry)
        if record is None or not _intact(entry / _MODEL, record):
            _log.warning("cache entry %s was altered; it is made again", recipe.key[:12])
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
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            while not self._store(model, record, entry):
                pass
        except OSError as error:
            raise DiskError(
                f"cannot write cache entry in {self.folder}: {error.strerror}; name another with --cache"
            ) from error
        return entry / _MODEL

    def _store(self, model: bytes, record: Record, entry: Path) -> bool:
        """Write an entry; False if another process removed the new folder as stale before it was pinned."""
        with tracked(self.folder / f"{_MAKING}{secrets.token_hex(6)}") as temporary:
            temporary.mkdir(mode=0o700)
            try:
                if not pin(temporary):
                    return False
                (temporary / _MODEL).write_bytes(model)
                (temporary / _RECORD).write_text(json.dumps(asdict(record), indent=2), encoding="utf-8")
                _install(temporary, entry)
            finally:
                unpin(temporary)
                shutil.rmtree(temporary, ignore_errors=True)
        return True

    def records(self) -> Iterator[Record]:
        """The records of all readable entries, by key."""
        for entry in sorted(self.folder.glob("[0-9a-f]*")):
            if record := _read_record(entry):
                yield record

    def unfinished(self) -> Iterator[Path]:
        """Temporary folders of entries: in progress, or left by a killed process."""
        yield from self.folder.glob(f"{_MAKING}*")


def _install(temporary: Path, entry: Path) -> None:
    """Rename a finished entry into the cache and pin it; an equal entry of another process is used instead."""
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
