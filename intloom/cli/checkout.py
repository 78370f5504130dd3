"""Commands of a checkout of the repository, which an installed package does not contain."""

import subprocess
import sys
from pathlib import Path

import intloom

_ROOT = Path(intloom.__file__).parents[1]
_NIGHTLY = "tools.nightly"


def is_checkout() -> bool:
    """Whether this package runs from a checkout."""
    return _ROOT.joinpath(*_NIGHTLY.split(".")).with_suffix(".py").exists()


def complete_nightly(folder: Path) -> bool:
    """Run all tests, measure coverage and mutations, and record a regression; whether all succeeded."""
    command = [sys.executable, "-m", _NIGHTLY, str(folder.resolve())]
    return subprocess.run(command, cwd=_ROOT, check=False).returncode == 0
