"""Make `.venv` with pip in it, on machines with and without Debian's python3-venv and python3-pip packages.

Runs on a bare Python 3.11 or later and imports only the standard library. Three ways, the first that works:
`ensurepip` (python3-venv is there), the system's own pip (python3-pip is there), and pip's wheel from PyPI, checked
against the SHA-256 that PyPI publishes for it.
"""

import hashlib
import importlib.util
import json
import subprocess
import sys
import tempfile
import urllib.request
import venv
from pathlib import Path
from urllib.parse import urljoin

PIP_INDEX = "https://pypi.org/pypi/pip/json"
MINIMUM = (3, 11)


def _pip_from_system(python: Path) -> None:
    subprocess.run([sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "pip"], check=True)


def _pip_from_pypi(python: Path) -> None:
    with urllib.request.urlopen(PIP_INDEX, timeout=60) as answer:
        files = json.load(answer)["urls"]
    wheel = next(f for f in files if f["packagetype"] == "bdist_wheel")
    # Mirrors of PyPI may give addresses relative to the index.
    with urllib.request.urlopen(urljoin(PIP_INDEX, wheel["url"]), timeout=60) as answer:
        data = answer.read()
    if hashlib.sha256(data).hexdigest() != wheel["digests"]["sha256"]:
        sys.exit(f"{wheel['filename']} must have the SHA-256 that PyPI publishes; try again, and mind the network")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / wheel["filename"]
        path.write_bytes(data)
        # A wheel is a zip file, and Python runs pip straight from it.
        subprocess.run([str(python), str(path / "pip"), "install", "-q", "--no-index", str(path)], check=True)


def _has_pip(python: Path) -> bool:
    command = [str(python), "-m", "pip", "--version"]
    return python.exists() and subprocess.run(command, check=False, capture_output=True).returncode == 0


def make_venv(folder: Path) -> None:
    """Create a virtual environment with pip in `folder`; one that works already is kept."""
    python = folder / "bin" / "python"
    if _has_pip(python):
        return
    if importlib.util.find_spec("ensurepip") is not None:
        venv.create(folder, with_pip=True, clear=True)
        return
    venv.create(folder, with_pip=False, clear=True)
    if importlib.util.find_spec("pip") is not None:
        _pip_from_system(python)
    else:
        _pip_from_pypi(python)


def main() -> None:
    """Make the environment named on the command line."""
    if sys.version_info < MINIMUM:
        wanted = ".".join(map(str, MINIMUM))
        sys.exit(f"Python must be {wanted} or later, not {sys.version.split()[0]}: make PYTHON=/path/to/python{wanted}")
    try:
        make_venv(Path(sys.argv[1]))
    except (subprocess.CalledProcessError, OSError) as error:
        sys.exit(f"cannot make {sys.argv[1]}: {error}\non Debian this helps: apt-get install python3-venv")


if __name__ == "__main__":
    main()
