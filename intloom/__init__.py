"""Intloom: from a quantized ONNX network to a Verilog accelerator, its program and the proof that they agree.

Everything that a user needs from Python: `quantize`, `compile`, `Program`, `Session`. The command line is `intloom`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from intloom.api import Program, Run, Session, compile  # noqa: A004  # see intloom.api
    from intloom.quantization import QuantizeOptions, quantize

    __version__: str

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
    # onnxruntime and Amaranth take a second to load; `intloom version` need not wait for them. And until the command
    # line answers to Ctrl-C, it must load as little as can be.
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name == "__version__":
        return _version()
    raise AttributeError(f"module 'intloom' has no attribute {name!r}")


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("intloom")
    except PackageNotFoundError:
        # Run from a checkout that was never installed.
        return "0"
