"""Ctrl-C at any point ends a command within two seconds, with code 130, no child process and no half-written file."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from intloom.common.cache.housekeeping import items
from intloom.common.cache.store import read_record
from intloom.common.cache_folder import cache_folder
from intloom.common.errors import ExitCode
from tests.support.environment import not_measured
from tests.support.signals import disturb

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


@dataclass(frozen=True)
class Ending:
    """How a command ended that was interrupted."""

    code: int
    seconds: float
    said: str
    left: list[int]
    """Processes of its that live on."""


def interrupt(words, after, folder):
    """Starts a command with its cache and temporary files in `folder`, and interrupts it after some seconds."""
    mark = f"{os.getpid()}-{time.monotonic_ns()}"
    (folder / "tmp").mkdir(exist_ok=True)
    env = {**not_measured(), "INTLOOM_TEST_MARK": mark, "INTLOOM_CACHE": str(folder / "cache")}
    env["TMPDIR"] = str(folder / "tmp")
    command = [sys.executable, "-m", "intloom", *map(str, words)]
    process = subprocess.Popen(command, cwd=folder, env=env, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    time.sleep(after)
    process.send_signal(signal.SIGINT)
    started = time.monotonic()
    _, said = process.communicate(timeout=30)
    elapsed = time.monotonic() - started
    deadline = time.monotonic() + 1
    while descendants(mark) and time.monotonic() < deadline:
        time.sleep(0.05)
    return Ending(process.returncode, elapsed, said, descendants(mark))


def check_clean(ending, folder):
    """A prompt end with the right code and words, no process left, and a cache with complete entries only."""
    assert ending.seconds < PATIENCE
    assert not ending.left
    # A command that had just finished may end as if nothing had happened.
    if ending.code != ExitCode.OK:
        assert ending.code == ExitCode.INTERRUPTED, ending.said
        assert ending.said.strip().splitlines()[-1] == "intloom: interrupted"
    # onnxruntime makes a file `.ses` as soon as it is imported.
    left = [p.name for p in (folder / "tmp").iterdir() if p.name != ".ses"]
    assert not left, "temporary files are left"
    for item in items(folder / "cache"):
        assert item.finished, f"{item.path} is left"
        assert read_record(item.path).intact(), f"{item.path} is incomplete"


def moments(rng, first, last, count):
    """Random times, one in each equal part of the span."""
    step = (last - first) / count
    return [first + step * (k + rng.random()) for k in range(count)]


def often(few, many):
    """Runs a test with this number of interrupts in each phase; every night with `many`."""
    return pytest.mark.parametrize("count", [few, pytest.param(many, marks=pytest.mark.nightly)])


@pytest.mark.slow
@often(2, 5)
def test_compile(tmp_path, quantized_models, rng, count):
    source = quantized_models("yolov8n", 320)
    for after in moments(rng, 0.3, 3.5, count):
        print(f"interrupted after {after:.3f} s")
        ending = interrupt(["compile", source, "-o", tmp_path / "o.loom"], after, tmp_path)
        check_clean(ending, tmp_path)
        made = sorted(p.name for p in tmp_path.glob("*loom*"))
        # An interrupt may come when all is done and only the process's end is left.
        assert made == ["o.loom", "o.loom.onnx"] or (made == [] and ending.code != ExitCode.OK)
        for name in made:
            (tmp_path / name).unlink()
        assert not list(tmp_path.glob(".*"))


@pytest.mark.slow
@often(1, 4)
def test_run(tmp_path, programs, rng, count):
    """While Verilog is generated and the simulator is built."""
    words = ["run", programs("tiny"), "--backend", "rtl", "--check", "-o", tmp_path / "run"]
    for after in moments(rng, 0.3, 9.0, count):
        print(f"interrupted after {after:.3f} s")
        ending = interrupt(words, after, tmp_path)
        check_clean(ending, tmp_path)
        assert (tmp_path / "run" / "run.json").exists() == (ending.code == ExitCode.OK)


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
@often(1, 2)
def test_run_of_minutes(tmp_path, programs, rng, jobs, count):
    # A slow bus lets one simulation, and segments of it, run for longer than the last moment.
    words = ["run", programs("c2f"), "--jobs", str(jobs), "-o", tmp_path / "run", "--limit", "1000000000"]
    words += ["--bandwidth", "0.001", "--latency", "1000000"]
    (tmp_path / "cache").symlink_to(cache_folder())
    for after in moments(rng, 1.0, 4.0, count):
        print(f"interrupted after {after:.3f} s")
        ending = interrupt(words, after, tmp_path)
        assert ending.seconds < PATIENCE
        assert not ending.left
        assert [p.name for p in (tmp_path / "tmp").iterdir() if p.name != ".ses"] == []
        assert ending.code == ExitCode.INTERRUPTED, ending.said
        assert not (tmp_path / "run" / "run.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
@often(1, 3)
def test_regress(tmp_path, rng, jobs, count):
    words = ["regress", "smoke", "--jobs", str(jobs), "-o", tmp_path / "out"]
    for after in moments(rng, 0.5, 12.0, count):
        print(f"interrupted after {after:.3f} s")
        check_clean(interrupt(words, after, tmp_path), tmp_path)
    results = tmp_path / "out" / "results.jsonl"
    for line in results.read_text().splitlines() if results.exists() else ():
        assert json.loads(line)["outcome"] == "pass"


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
def test_a_second_interrupt_does_not_cut_the_cleaning_up_short(tmp_path, first):
    setup = "from intloom.cli.interrupt import prompt_interrupt"
    end = disturb(setup, "prompt_interrupt()", [first, signal.SIGINT, signal.SIGTERM], tmp_path)
    assert end.said == ["working", "cleaning up", "clean"]
    assert end.code != ExitCode.OK
    assert not end.left


def test_an_interrupt_never_passes_through_a_library_that_loads(tmp_path, quantized_models):
    """An extension module can crash in it."""
    (tmp_path / "onnx.py").write_text(
        "import os, signal, time\n"
        "try:\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    time.sleep(5)\n"
        "except KeyboardInterrupt:\n"
        "    os.kill(os.getpid(), signal.SIGSEGV)\n"
    )
    command = [sys.executable, "-m", "intloom", "inspect", str(quantized_models("tiny"))]
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (ExitCode.INTERRUPTED, "", "intloom: interrupted\n")


INTERRUPTED_LIBRARY = """
import os, signal, time
from intloom.cli import entry
def build_app(words):
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)
    except KeyboardInterrupt:
        raise ValueError("converted") from None
entry.build_app = build_app
raise SystemExit(entry.run(["inspect"]))
"""

INTERRUPTED_BEFORE = """
import contextlib, os, signal, time
from intloom.cli import entry
@contextlib.contextmanager
def prompt_interrupt():
    with entry_interrupt() as interruption:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)
        yield interruption
entry_interrupt, entry.prompt_interrupt = entry.prompt_interrupt, prompt_interrupt
raise SystemExit(entry.run(["inspect"]))
"""


@pytest.mark.parametrize("script", [INTERRUPTED_LIBRARY, INTERRUPTED_BEFORE], ids=["converted", "before the command"])
def test_every_interrupt_ends_in_one_line(script):
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (ExitCode.INTERRUPTED, "", "intloom: interrupted\n")


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
