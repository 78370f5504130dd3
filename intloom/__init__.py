"""Intloom: from a quantised ONNX network to a Verilog accelerator, its program and the proof that they agree.

Everything that a user needs from Python: `quantize`, `compile`, `Program`, `Session`. The command line is `intloom`.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as _version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api import Program, Run, Session, compile  # noqa: A004  # see intloom.api
    from .quantization import QuantizeOptions, quantize

try:
    __version__ = _version("intloom")
except PackageNotFoundError:
    # Run from a checkout that was never installed.
    __version__ = "0"

_HOMES = {
    "Program": "intloom.api",
    "Run": "intloom.api",
    "Session": "intloom.api",
    "compile": "intloom.api",
    "QuantizeOptions": "intloom.quantization",
    "quantize": "intloom.quantization",
}

__all__ = ["Program", "QuantizeOptions", "Run", "Session", "__version__", "compile", "quantize"]


def __getattr__(name: str) -> Any:
    # onnxruntime and Amaranth take a second to load; `intloom version` need not wait for them.
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'intloom' has no attribute {name!r}")
