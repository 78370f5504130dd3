"""A simulator ends when its owner does, however that ends."""

import signal
import subprocess
import sys
import time

import psutil
import pytest

from intloom.common.errors import SimulationError
from intloom.sim.rtl.build_steps import run_logged
from intloom.sim.rtl.library import CancelledBuildError
from intloom.sim.rtl.process import kill_group, run_simulator

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


def test_no_process_of_a_killed_group_lives_on(tmp_path):
    """Else a folder cannot be removed: a killed process completes the system call that makes a file."""
    # Without its memory the process would end too soon to be seen.
    member = "import time; held = b'x' * (1 << 28); print(len(held), flush=True); time.sleep(60)"
    command = ["sh", "-c", f'{sys.executable} -c "{member}" & wait']
    process = subprocess.Popen(command, cwd=tmp_path, start_new_session=True, stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline()
    (child,) = psutil.Process(process.pid).children()
    kill_group(process)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


def test_a_cancelled_build_starts_no_further_step(tmp_path):
    """It may have waited for a lock until then, and an interrupted command has little time to clean up."""

    def cancelled():
        raise CancelledBuildError

    with pytest.raises(CancelledBuildError):
        run_logged(["touch", str(tmp_path / "begun")], tmp_path, {}, cancelled)
    assert not list(tmp_path.iterdir())
