"""Workers: what a dead one worked on, exceptions, and ends that leave nothing, however often they are told to end."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from intloom.common.errors import UnsupportedError
from intloom.sim.processes import Processes, Work
from tests.support.signals import disturb

SETUP = """
from contextlib import nullcontext
from intloom.sim.processes import clean_up_when_ended
clean_up_when_ended()
"""


@pytest.mark.parametrize("again", [signal.SIGTERM, signal.SIGINT])
def test_a_worker_that_is_ended_twice_cleans_up_to_the_end(tmp_path, again):
    end = disturb(SETUP, "nullcontext()", [signal.SIGTERM, again, again], tmp_path)
    assert end.said == ["working", "cleaning up", "clean"]
    assert end.code == 128 + signal.SIGTERM
    assert not end.left


def work(do) -> Work[str, str]:
    return Work(do=do, key=str, dead=lambda _task: "dead")


def die_once_or_always(task: str) -> str:
    """A file's task ends its process the first time, `always` each time."""
    path = Path(task)
    if task == "always" or (path.is_absolute() and not path.exists()):
        path.is_absolute() and path.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "done"


def test_a_task_whose_process_dies_is_repeated_once_and_the_others_go_on(tmp_path):
    once = str(tmp_path / "once")
    tasks = ["a", once, "b", "always", "c", "d"]
    results = dict(work(die_once_or_always).results(tasks, Processes(2)))
    assert results == dict.fromkeys(tasks, "done") | {"always": "dead"}


def test_a_script_that_starts_its_work_when_it_is_imported_is_told_so(tmp_path):
    (script := tmp_path / "script.py").write_text(
        "from intloom.sim.processes import Processes, Work\n"
        "dict(Work(do=str, key=str, dead=str).results(['a', 'b'], Processes(2)))\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and 'under `if __name__ == "__main__":`' in done.stderr


def fail_or_wait(task: str) -> str:
    if task == "fail":
        raise UnsupportedError("this one", row=7)
    time.sleep(60)
    return "late"


def test_an_exception_of_a_task_is_raised_with_its_traceback_and_ends_the_others():
    started = time.monotonic()
    with pytest.raises(UnsupportedError, match="this one") as raised:
        dict(work(fail_or_wait).results(["wait", "fail", "wait more"], Processes(2)))
    assert raised.value.row == 7 and "in fail_or_wait" in raised.value.__notes__[0]
    assert time.monotonic() - started < 30 and not multiprocessing.active_children()


def test_results_that_nobody_wants_any_more_end_the_workers():
    results = work(die_once_or_always).results([*"abcdef"], Processes(2))
    next(results)
    results.close()
    assert not multiprocessing.active_children()
