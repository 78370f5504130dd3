"""A simulator ends when its owner does, however that ends."""

import signal
import subprocess
import sys
import time

import psutil
import pytest

from intloom.common.errors import SimulationError
from intloom.sim.rtl.process import run_simulator

OWNER = """
from pathlib import Path
from intloom.sim.rtl.process import run_simulator
run_simulator(["sleep", "600"], Path("."), Path("log"), {})
"""


def test_a_simulator_dies_with_an_owner_that_was_killed(tmp_path):
    env = {"PYTHONPATH": ":".join(p for p in sys.path if p), "PATH": "/usr/bin:/bin"}
    owner = subprocess.Popen([sys.executable, "-c", OWNER], cwd=tmp_path, env=env)
    deadline = time.monotonic() + 20
    while not (children := psutil.Process(owner.pid).children()) or children[0].name() != "sleep":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    _, alive = psutil.wait_procs(children, timeout=10)
    assert not alive


def test_a_crash_names_the_signal_and_the_last_words(tmp_path):
    command = ["sh", "-c", "echo last words; kill -SEGV $$"]
    with pytest.raises(SimulationError, match="was killed by SIGSEGV:\nlast words"):
        run_simulator(command, tmp_path, tmp_path / "log", {"PATH": "/usr/bin:/bin"})
