"""Temporary files and folders go with their block, and before that when a process is ended from outside."""

import os
import signal
import subprocess
import sys
import time

import pytest

from intloom.cli import main
from intloom.common.cache_folder import cache_folder
from intloom.common.errors import DiskError, ExitCode
from intloom.common.temporary_files import check_temporary_space, remove_tracked, temporary_folder, tracked

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


_PARENT = """
import subprocess, sys, time
from intloom.cli.interrupt import prompt_interrupt

with prompt_interrupt():
    child = subprocess.Popen([sys.executable, "-c", sys.argv[1], sys.argv[2]], stdout=subprocess.PIPE, text=True)
    try:
        print(child.stdout.readline().strip(), flush=True)
        time.sleep(60)
    finally:
        child.wait()
"""
_SLOW_CHILD = """
import signal, sys, time
from pathlib import Path
from intloom.common.temporary_files import temporary_folder

signal.signal(signal.SIGTERM, lambda *_: None)
with temporary_folder(parent=Path(sys.argv[1])) as folder:
    (folder / "object.o").touch()
    print("building", flush=True)
    time.sleep(60)
"""


def test_what_a_killed_child_leaves_is_removed_with_the_interrupted_command(tmp_path):
    """On a loaded machine a worker may have no time to end its build: it is killed, and its folder is there."""
    command = [sys.executable, "-c", _PARENT, _SLOW_CHILD, str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "building\n"
    assert len(list(tmp_path.iterdir())) == 1
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == ExitCode.INTERRUPTED
    assert time.monotonic() - start < 5
    assert not list(tmp_path.iterdir())


_WRITER = """
import sys, time
from pathlib import Path
from intloom.common.atomic_write import atomic_path
from intloom.common.temporary_files import temporary_folder

here = Path(sys.argv[1])
with temporary_folder(parent=here) as folder, atomic_path(here / "net.onnx") as half:
    (folder / "memory").touch()
    print("ready", flush=True)
    time.sleep(60)
"""


def test_the_next_command_removes_what_a_killed_process_left(tmp_path, monkeypatch):
    monkeypatch.setenv("INTLOOM_CACHE", str(tmp_path / "cache"))
    work = tmp_path / "work"
    work.mkdir()
    processes = []
    for _ in range(2):
        process = subprocess.Popen([sys.executable, "-c", _WRITER, str(work)], stdout=subprocess.PIPE, text=True)
        processes.append(process)
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    killed, alive = processes
    before = set(work.iterdir())
    killed.kill()
    killed.wait()
    assert set(work.iterdir()) == before
    assert main(["--version"]) == 0
    assert len(set(work.iterdir())) == 2, "the files of the process that runs stay"
    alive.kill()
    alive.wait()
    assert main(["version"]) == 0
    assert not list(work.iterdir())
    assert not list((tmp_path / "cache" / "temporary").iterdir())


def test_a_note_never_names_what_the_process_did_not_create(tmp_path, monkeypatch):
    monkeypatch.setenv("INTLOOM_CACHE", str(tmp_path / "cache"))
    notes = cache_folder() / "temporary"
    notes.mkdir()
    (notes / "empty").write_text("")
    (notes / "relative").write_text("work")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path)
    assert main(["--version"]) == 0
    assert (tmp_path / "work").is_dir()
    assert not list(notes.iterdir())


def test_temporary_files_work_without_a_cache_folder(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("INTLOOM_CACHE", str(tmp_path / "file" / "cache"))
    with temporary_folder(parent=tmp_path) as folder:
        assert folder.is_dir()
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
    assert main(["--version"]) == 0


def test_space_for_temporary_files_is_checked(tmp_path, monkeypatch):
    check_temporary_space(1000)
    with pytest.raises(DiskError, match="temporary files need 1000000000000.0 MB"):
        check_temporary_space(10**18)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "missing"))
    with pytest.raises(DiskError, match=f"cannot write to TMPDIR={tmp_path / 'missing'}"):
        check_temporary_space()
