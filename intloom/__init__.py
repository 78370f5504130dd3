"""Intloom: from a quantized ONNX network to a Verilog accelerator and its program, checked byte for byte.

The Python interface: `quantize`, `compile`, `Program`, `Session`, the options and errors of these, and custom
operators. The command line is `intloom`.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from intloom.api import Program, Run, compile, explore  # noqa: A004  # see intloom.api
    from intloom.common.errors import (
        CapacityError,
        DiskError,
        EncodingError,
        EnvironmentFault,
        ExitCode,
        FileFormatError,
        HardwareMismatchError,
        IntloomError,
        MismatchError,
        ModelError,
        ParameterError,
        ProgramError,
        SimulationError,
        UnsupportedError,
        UsageError,
    )
    from intloom.compiler.custom import CustomOp
    from intloom.compiler.custom import register as register_custom_op
    from intloom.compiler.custom import unregister as unregister_custom_op
    from intloom.execution_provider import register_execution_provider
    from intloom.preparation import Preparation
    from intloom.quantization import QuantizeOptions, quantize
    from intloom.session import Session
    from intloom.sim.rtl.job import MemorySettings
    from intloom.sim.rtl.options import RtlOptions

    __version__: str

__all__ = [
    "CapacityError",
    "CustomOp",
    "DiskError",
    "EncodingError",
    "EnvironmentFault",
    "ExitCode",
    "FileFormatError",
    "HardwareMismatchError",
    "IntloomError",
    "MemorySettings",
    "MismatchError",
    "ModelError",
    "ParameterError",
    "Preparation",
    "Program",
    "ProgramError",
    "QuantizeOptions",
    "RtlOptions",
    "Run",
    "Session",
    "SimulationError",
    "UnsupportedError",
    "UsageError",
    "__version__",
    "compile",
    "explore",
    "quantize",
    "register_custom_op",
    "register_execution_provider",
    "unregister_custom_op",
]

# onnxruntime 1.31 reads this variable while it is imported. Without it, it writes a device id and queued events into
# the user's cache folder. Every module of the package is imported after this line; child processes inherit it.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

_MODULES = {
    "Preparation": "intloom.preparation",
    "Program": "intloom.api",
    "Run": "intloom.api",
    "Session": "intloom.session",
    "compile": "intloom.api",
    "explore": "intloom.api",
    "CustomOp": "intloom.compiler.custom",
    "register_custom_op": "intloom.compiler.custom",
    "unregister_custom_op": "intloom.compiler.custom",
    "register_execution_provider": "intloom.execution_provider",
    "RtlOptions": "intloom.sim.rtl.options",
    "QuantizeOptions": "intloom.quantization",
    "quantize": "intloom.quantization",
    "MemorySettings": "intloom.sim.rtl.job",
}
"""Module of each exported name. Names that are not listed are errors."""
_ERRORS = "intloom.common.errors"
_ALIASES = {"register_custom_op": "register", "unregister_custom_op": "unregister"}
"""Exported names that differ from the name in the module."""


def __getattr__(name: str) -> Any:
    # Loaded on first use: onnxruntime and Amaranth take a second to import, which `intloom version` does not need.
    # Before the interrupt handler of the command line is installed, as little as possible may be imported.
    if name == "__version__":
        return _version()
    if name not in __all__:
        raise AttributeError(f"module 'intloom' has no attribute {name!r}")
    return getattr(import_module(_MODULES.get(name, _ERRORS)), _ALIASES.get(name, name))


def __dir__() -> list[str]:
    return sorted(__all__)


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("intloom")
    except PackageNotFoundError:
        # A checkout that is not installed has no metadata.
        return "0"
