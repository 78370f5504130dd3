"""Ctrl-C at any point ends a command within two seconds, with code 130, no child process and no half-written file."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hw.spec.errors import ExitCode
from intloom.cli import main

PATIENCE = 2.0


def descendants(number):
    """Living processes whose environment marks them as started by the test."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"INTLOOM_TEST_MARK={number}".encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def interrupt(words, after, cwd, cache):
    """Starts a command, interrupts it, and says how it ended and how long that took."""
    mark = f"{os.getpid()}-{time.monotonic_ns()}"
    env = {**os.environ, "INTLOOM_TEST_MARK": mark, "INTLOOM_CACHE": str(cache)}
    command = [sys.executable, "-m", "intloom", *map(str, words)]
    process = subprocess.Popen(command, cwd=cwd, env=env, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    time.sleep(after)
    alive = process.poll() is None
    process.send_signal(signal.SIGINT)
    started = time.monotonic()
    _, said = process.communicate(timeout=30)
    elapsed = time.monotonic() - started
    deadline = time.monotonic() + 1
    while descendants(mark) and time.monotonic() < deadline:
        time.sleep(0.05)
    return alive, process.returncode, elapsed, said, descendants(mark)


@pytest.fixture(scope="module")
def program(tmp_path_factory, quantized_models):
    path = tmp_path_factory.mktemp("program") / "net.loom"
    assert main(["compile", str(quantized_models("tiny")), "--preset", "nano", "-o", str(path), "-q"]) == 0
    return path


@pytest.mark.slow
@pytest.mark.parametrize("after", [0.05, 0.5, 1.5])
def test_compile(after, tmp_path, quantized_models):
    source = quantized_models("yolov8n", 320)
    words = ["compile", source, "-o", tmp_path / "o.loom"]
    alive, code, elapsed, said, left = interrupt(words, after, tmp_path, tmp_path / "cache")
    assert elapsed < PATIENCE
    assert not left
    if alive and after >= 0.5:
        assert code == ExitCode.INTERRUPTED, said
        assert said.strip().splitlines()[-1] == "intloom: interrupted"
        assert not list(tmp_path.glob("*loom*"))
    assert not list(tmp_path.glob(".*"))


@pytest.mark.slow
@pytest.mark.parametrize("after", [1.5, 6.0])
def test_run_while_the_simulator_is_built(after, tmp_path, program):
    words = ["run", program, "--backend", "rtl", "-o", tmp_path / "run"]
    alive, code, elapsed, said, left = interrupt(words, after, tmp_path, tmp_path / "cache")
    assert alive, said
    assert code == ExitCode.INTERRUPTED, said
    assert elapsed < PATIENCE
    assert not left
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_deaf_library_is_ended_from_outside(tmp_path):
    """A thread that holds the main thread in one long call of C code cannot keep the command alive."""
    code = (
        "import sys, numpy as np\n"
        "from intloom.cli.interrupt import prompt_interrupt\n"
        "with prompt_interrupt():\n"
        "    print('ready', flush=True)\n"
        "    a = np.ones((6000, 6000)); a @ a @ a @ a\n"
        "    import time; t = time.monotonic(); [a.dot(a) for _ in range(50)]\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    started = time.monotonic()
    process.communicate(timeout=30)
    assert process.returncode in (1, ExitCode.INTERRUPTED, -signal.SIGINT)
    assert time.monotonic() - started < PATIENCE


@pytest.mark.slow
def test_regress(tmp_path):
    words = ["regress", "smoke", "--jobs", "2", "-o", tmp_path / "out"]
    alive, code, elapsed, said, left = interrupt(words, 5.0, tmp_path, tmp_path / "cache")
    assert alive, said
    assert code == ExitCode.INTERRUPTED, said
    assert elapsed < PATIENCE
    assert not left
