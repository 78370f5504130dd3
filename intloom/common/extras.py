"""Optional extras of the distribution, and the error that names the command which installs one."""

import importlib

from intloom.common.errors import EnvironmentFault


def install_command(extra: str) -> str:
    """The command that installs an extra of `pyproject.toml`."""
    return f'pip install "intloom[{extra}]"'


def require_extra(extra: str, *modules: str) -> None:
    """Check that the modules of an extra can be imported; call it directly before their import.

    Raises
    ------
    EnvironmentFault
        A module is missing; the message ends with the command that installs the extra.
    """
    for name in modules:
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise EnvironmentFault(f"{name} cannot be imported ({error}): {install_command(extra)}") from error
