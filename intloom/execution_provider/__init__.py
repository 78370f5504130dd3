"""Execution provider for onnxruntime: its own sessions run their quantized part on the accelerator."""

import atexit
from pathlib import Path

import onnxruntime

from intloom.common.errors import EnvironmentFault
from intloom.execution_provider.library import Library, build
from intloom.execution_provider.provider import NAME, Provider, Settings
from intloom.hw.options import choose_params
from intloom.sim.backend import backend_kind

_registered: list[Provider] = []


def register_execution_provider(
    *, backend: str = "golden", preset: str | None = None, config: str | Path | None = None
) -> str:
    """Register the provider with onnxruntime, and give its name, `IntloomExecutionProvider`.

    Sessions use it that name it first in `providers`: onnxruntime gives each node to the first provider that takes it.
    Their nodes that `intloom inspect` assigns to the accelerator run on `backend`, all others on onnxruntime's
    processor. A session that names the provider and assigns no node to it logs a warning with the reason. Another call
    changes the arguments for later sessions. `providers=[(NAME, {"backend": "rtl"})]` sets them for one session.

    Parameters
    ----------
    backend
        `golden`, `isa` or `rtl`; all give the same bytes.
    preset, config
        The hardware: a preset (default: `base`) or a TOML file.

    Raises
    ------
    EnvironmentFault
        No C compiler is installed, which builds the provider's library at the first use, or onnxruntime refuses it.
    UsageError, ParameterError
        An argument is invalid.
    """
    backend_kind(backend)
    choose_params(preset, None if config is None else Path(config), None)
    settings = Settings(backend, preset, None if config is None else str(config))
    if _registered:
        _registered[0].settings = settings
        return NAME
    library = Library(build())
    provider = Provider(library, settings)
    try:
        onnxruntime.register_execution_provider_library(NAME, str(library.path))
    except Exception as error:
        # onnxruntime's exceptions have no documented base class.
        raise EnvironmentFault(f"onnxruntime {onnxruntime.__version__} refuses the provider: {error}") from error
    atexit.register(library.end)
    _registered.append(provider)
    return NAME
