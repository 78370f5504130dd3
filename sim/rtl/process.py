"""Runs a simulator as a process group, which is killed as a whole on any error."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from intloom.common.errors import SimulationError
from intloom.common.extras import require_extra
from intloom.common.signals import processes

_POLL_SECONDS = 0.02
_KILLED_SECONDS = 1.0
"""At most; killed processes end as soon as they leave their system call."""
_LOG_LINES = 15


class SimulatorEndedError(SimulationError):
    """The simulator's process ended with an error."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.killed = code < 0
        """A signal ended it."""


def cocotb_environment(toplevel: str, module: str, folder: Path) -> dict[str, str]:
    """The environment in which a simulator with cocotb finds its Python, its top module and its tests."""
    require_extra("sim", "cocotb_tools.config")
    import cocotb_tools.config
    import find_libpython

    entry = [str(find_libpython.find_libpython()), cocotb_tools.config.pygpi_entry_point()]
    return {
        **os.environ,
        "COCOTB_TOPLEVEL": toplevel,
        "COCOTB_TEST_MODULES": module,
        "COCOTB_RESULTS_FILE": str(folder / "results.xml"),
        "COCOTB_LOG_LEVEL": "WARNING",
        # Pytest rewrites no assertions in the benches, and its plugins are a quarter of a simulator's start.
        "COCOTB_REWRITE_ASSERTION_FILES": "",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "LD_LIBRARY_PATH": os.pathsep.join([str(cocotb_tools.config.libs_dir), os.environ.get("LD_LIBRARY_PATH", "")]),
        # Verilator defers inertial writes itself, which is quicker.
        "COCOTB_TRUST_INERTIAL_WRITES": "1",
        "TOPLEVEL_LANG": "verilog",
        "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
        "PYGPI_PYTHON_BIN": sys.executable,
        "GPI_USERS": ";".join(entry),
    }


def run_simulator(
    command: list[str], folder: Path, log: Path, env: Mapping[str, str], watch: Callable[[], None] | None = None
) -> None:
    """Run `command` in `folder` to its end; `watch` is called a few times a second.

    The simulator has a process group of its own, so that an interrupt at the terminal meets only this process, which
    then kills the whole group. Raises `SimulatorEndedError` with the end of the log when the simulator dies.
    """
    with log.open("wb") as out:
        process = subprocess.Popen(
            killed_with_parent(command), cwd=folder, env=dict(env), stdout=out, stderr=out, start_new_session=True
        )
    try:
        while process.poll() is None:
            if watch is not None:
                watch()
            time.sleep(_POLL_SECONDS)
    finally:
        # Also after a normal end: the simulator may have left children.
        kill_group(process)
    if process.returncode:
        message = f"the simulator {_how_it_ended(process.returncode)}:\n{log_tail(log)}"
        raise SimulatorEndedError(message, process.returncode)


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Ends a process that leads a group of its own, with all its children; it may be over already.

    Afterwards no process of the group makes a file: the folder in which they worked can be removed.
    """
    deadline = time.monotonic() + _KILLED_SECONDS
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        while _group_lives(process.pid) and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
    process.wait()


def _group_lives(group: int) -> bool:
    """Whether a process of this group runs; raises `ProcessLookupError` when not even one that has ended is left."""
    os.killpg(group, 0)
    return any(p.group == group and p.state not in "ZX" for p in processes())


def killed_with_parent(command: list[str]) -> list[str]:
    """The command under setpriv (util-linux), if installed: the kernel kills it when this process dies."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", *command] if setpriv else command


def _how_it_ended(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    return f"was killed by {signal.Signals(-code).name}"


def log_tail(log: Path) -> str:
    """The last lines that the simulator printed."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-_LOG_LINES:])
