"""Which state of the project a result belongs to: hardware, compiler and simulation as they were when it was made."""

import hashlib
import importlib.util
from functools import lru_cache
from pathlib import Path

_PACKAGES = ("intloom.common", "intloom.hw", "intloom.compiler", "intloom.sim")
_SUFFIXES = {".py", ".cpp", ".h", ".j2"}


@lru_cache(maxsize=1)
def project_version() -> str:
    """Hash of all sources that a case's outcome depends on."""
    digest = hashlib.sha256()
    for package in _PACKAGES:
        spec = importlib.util.find_spec(package)
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            for path in sorted(p for p in Path(folder).rglob("*") if p.suffix in _SUFFIXES):
                digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:24]
