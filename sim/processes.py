"""Work in several processes of this machine or on a Dask cluster; what a dead process worked on is reported."""

import multiprocessing
import signal
import sys
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from types import FrameType
from typing import Any, Generic, TypeVar

from intloom.common.errors import EnvironmentFault
from intloom.common.jobs import check_jobs
from intloom.common.signals import ignore_signals
from intloom.sim.dask_cluster import dask_client

_RETRIES = 5
"""How often Dask repeats a task whose worker died."""
_PATIENCE = 5.0
"""Seconds that a process has to end."""

_NOT_STARTED = 1
"""Exit code of an exception before the first task: those of tasks are sent."""

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class _Answer(Generic[R]):
    result: R


class _Worker(Generic[T, R]):
    """A process that does one task after another.

    It has a pipe of its own. Processes that read one queue share its lock, and one that is killed while it holds the
    lock leaves the others waiting.
    """

    def __init__(self) -> None:
        # A fresh process: forking one that holds threads (numpy, onnxruntime) may deadlock.
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self.process.start()
        # The process now has the only other end: when it dies, the pipe ends.
        theirs.close()
        self.task: T

    def begin(self, task: T) -> None:
        """Give it its next task."""
        self.task = task
        self.send(task)

    def send(self, value: Any) -> None:
        """Write to its pipe; if it is dead, `answer` tells."""
        with suppress(ConnectionError):
            self.pipe.send(value)

    def answer(self) -> _Answer[R] | None:
        """What its task gave, None if it has died; an exception of the task is raised."""
        try:
            message: _Answer[R] | Exception = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join(_PATIENCE)
            if self.process.exitcode == _NOT_STARTED:
                raise EnvironmentFault(
                    "a process of the pool did not start: it imports the script that runs, which must start the work "
                    'under `if __name__ == "__main__":`, or with jobs=1'
                ) from None
            return None
        if isinstance(message, Exception):
            raise message
        return message

    def end(self) -> None:
        """Close its pipe, at which it ends, and wait for that."""
        self.pipe.close()
        self.process.join(_PATIENCE)
        self.process.kill()
        self.process.join()


@dataclass(frozen=True)
class Processes:
    """Where tasks run."""

    jobs: int = 1
    """Processes on this machine."""
    dask: str | None = None
    """Address of a Dask scheduler, to run the tasks there instead."""

    def __post_init__(self) -> None:
        check_jobs(self.jobs)


@dataclass(frozen=True)
class Work(Generic[T, R]):
    """What is done with each task."""

    do: Callable[[T], R]
    key: Callable[[T], str]
    """A unique name of a task."""
    dead: Callable[[T], R]
    """The result of a task whose process died."""

    def results(self, tasks: Sequence[T], where: Processes) -> Iterator[tuple[T, R]]:
        """Every task with its result, as they complete."""
        if where.dask is not None:
            yield from self._on_dask(tasks, where.dask)
        elif where.jobs <= 1:
            yield from ((task, self.do(task)) for task in tasks)
        else:
            yield from self._in_processes(tasks, where.jobs)

    def _in_processes(self, tasks: Sequence[T], jobs: int) -> Iterator[tuple[T, R]]:
        died: list[T] = []
        with closing(self._answers(tasks, jobs)) as answers:
            for task, answer in answers:
                if answer is None:
                    died.append(task)
                else:
                    yield task, answer.result
        # Once more, each with the memory of the machine for itself.
        with closing(self._answers(died, 1)) as answers:
            for task, answer in answers:
                yield task, self.dead(task) if answer is None else answer.result

    def _answers(self, tasks: Sequence[T], jobs: int) -> Generator[tuple[T, _Answer[R] | None], None, None]:
        """The answer to every task, None where its process died."""
        left = deque(tasks)
        workers: list[_Worker[T, R]] = []
        try:
            while left or workers:
                fresh = [_Worker[T, R]() for _ in range(min(jobs - len(workers), len(left)))]
                workers += fresh
                for worker in fresh:
                    worker.send(self.do)
                    worker.begin(left.popleft())
                ready = wait([worker.pipe for worker in workers])
                for worker in [w for w in workers if w.pipe in ready]:
                    task, answer = worker.task, worker.answer()
                    if left and answer is not None:
                        worker.begin(left.popleft())
                    else:
                        workers.remove(worker)
                        worker.end()
                    yield task, answer
        finally:
            for worker in workers:
                worker.process.terminate()
            for worker in workers:
                worker.end()

    def _on_dask(self, tasks: Sequence[T], address: str) -> Iterator[tuple[T, R]]:
        with dask_client(address) as client:
            from distributed import KilledWorker
            from distributed import as_completed as dask_completed

            # A task may run twice when its worker dies, so its key alone names it.
            futures = {
                client.submit(self.do, t, key=f"task-{self.key(t)}", retries=_RETRIES, pure=False): t for t in tasks
            }
            for future in dask_completed(list(futures)):
                task = futures[future]
                try:
                    yield task, future.result()
                except KilledWorker:
                    yield task, self.dead(task)


def clean_up_when_ended() -> None:
    """Make SIGTERM end this process through its context managers, which remove their temporary files.

    Only the first SIGTERM counts: an interrupted command sends it to all its descendants, after the pool has. SIGINT is
    ignored: the parent receives the interrupt of the terminal and passes it on.
    """
    ignore_signals(signal.SIGINT)
    signal.signal(signal.SIGTERM, _end)


def _end(number: int, _frame: FrameType | None) -> None:
    ignore_signals(signal.SIGTERM)
    sys.exit(128 + number)


def _serve(pipe: Connection) -> None:
    """Do what the pipe brings until it closes: first the function, then its tasks."""
    clean_up_when_ended()
    with suppress(EOFError, ConnectionError):
        do = pipe.recv()
        while True:
            pipe.send(_try(do, pipe.recv()))


def _try(do: Callable[[T], R], task: T) -> _Answer[R] | Exception:
    try:
        return _Answer(do(task))
    except Exception as error:  # noqa: BLE001  # raised in the other process
        # A traceback does not pass a pipe.
        error.add_note(traceback.format_exc())
        return error
