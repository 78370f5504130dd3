"""Temporary files and folders go with their block, and before that when a process is ended from outside."""

import os
import signal
import subprocess
import sys
import time

from intloom.common.errors import ExitCode
from intloom.common.temporary_files import remove_tracked, temporary_folder, tracked

_DEAF = """
import signal, sys, time
from pathlib import Path
from intloom.common.temporary_files import tracked, temporary_folder
from intloom.cli.interrupt import prompt_interrupt

here = Path(sys.argv[1])
with prompt_interrupt(), temporary_folder(parent=here) as folder, tracked(here / "half.onnx") as half:
    half.touch()
    (folder / "memory").touch()
    # As if a library computed on and on.
    signal.signal(signal.SIGINT, lambda *_: None)
    print("deaf", flush=True)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        time.sleep(0.1)
"""


def test_a_folder_goes_with_its_block(tmp_path):
    with temporary_folder("x-", tmp_path) as folder:
        (folder / "file").touch()
        assert [*tmp_path.glob("x-*")] == [folder]
    assert not list(tmp_path.iterdir())


def test_only_what_is_still_in_use_is_removed(tmp_path):
    done, half = tmp_path / "done", tmp_path / "half"
    with tracked(done):
        done.touch()
    with tracked(half), temporary_folder(parent=tmp_path) as folder:
        half.touch()
        (folder / "file").touch()
        remove_tracked()
        assert [*tmp_path.iterdir()] == [done]
        folder.mkdir()


def test_an_interrupted_process_that_does_not_listen_leaves_nothing(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", _DEAF, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "deaf\n"
    assert len(list(tmp_path.iterdir())) == 2
    start = time.monotonic()
    os.kill(process.pid, signal.SIGINT)
    assert process.wait(timeout=20) == ExitCode.INTERRUPTED
    assert time.monotonic() - start < 10
    assert not list(tmp_path.iterdir())
