"""The C library of the provider, built at the first use."""

import ctypes
import hashlib
import shutil
import subprocess
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from intloom.common.cache.store import Kind, cached_file
from intloom.common.errors import EnvironmentFault

_COMPILERS = ("cc", "gcc", "clang")


def build() -> Path:
    """The library's file in the cache; built if it is not there.

    Raises
    ------
    EnvironmentFault
        No C compiler is installed, or it fails.
    """
    source = (files("intloom.execution_provider") / "entry.c").read_bytes()
    key = hashlib.sha256(source).hexdigest()[:32]
    return cached_file(Kind.LIBRARY, key, partial(_compile, source), detail="the execution provider").path


def _compile(source: bytes, folder: Path) -> Path:
    compiler = next((c for c in _COMPILERS if shutil.which(c)), None)
    if compiler is None:
        raise EnvironmentFault("a C compiler is missing, which builds the execution provider: apt-get install gcc")
    command = [compiler, "-O1", "-shared", "-fPIC", "-x", "c", "-", "-o", str(folder / "provider.so")]
    done = subprocess.run(command, input=source, capture_output=True, check=False)
    if done.returncode:
        raise EnvironmentFault(f"{compiler} cannot build the execution provider: {done.stderr.decode().strip()}")
    return folder / "provider.so"


class Library:
    """The loaded library. onnxruntime loads the same file, and therefore shares its variables."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._library = ctypes.CDLL(str(path))

    def set(self, create: Any, release: Any) -> None:
        """Set the functions that the library forwards to."""
        self._library.intloom_set(create, release)

    def end(self) -> None:
        """Stop the forwarding of releases; Python ends."""
        self._library.intloom_end()

    def address(self, name: str) -> int:
        """Address of a function."""
        return ctypes.cast(getattr(self._library, name), ctypes.c_void_p).value or 0
