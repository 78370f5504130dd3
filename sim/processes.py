"""Work in several processes of this machine or on a Dask cluster; what a dead process worked on is reported."""

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from types import FrameType
from typing import Generic, TypeVar

from intloom.common.signals import ignore_signals
from intloom.sim.dask_cluster import dask_client

_RETRIES = 5
"""How often Dask repeats a task whose worker died."""

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Processes:
    """Where tasks run."""

    jobs: int = 1
    """Processes on this machine."""
    dask: str | None = None
    """Address of a Dask scheduler, to run the tasks there instead."""


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
            left = {self.key(task): task for task in tasks}
            try:
                for task, result in self._in_pool(tasks, where.jobs):
                    del left[self.key(task)]
                    yield task, result
            except BrokenProcessPool:
                # A task has ended its process, and with it the pool: each of the rest in a process of its own.
                yield from map(self._alone, left.values())

    def _in_pool(self, tasks: Sequence[T], jobs: int) -> Iterator[tuple[T, R]]:
        # Fresh processes: forking one that holds threads (numpy, onnxruntime) may deadlock.
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(jobs, mp_context=context, initializer=clean_up_when_ended) as pool:
            futures = {pool.submit(_do_or_end, self.do, task): task for task in tasks}
            try:
                for future in as_completed(futures):
                    yield futures[future], future.result()
            except BaseException:
                # Without the cancellation the pool would finish all waiting tasks first.
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _alone(self, task: T) -> tuple[T, R]:
        try:
            return next(self._in_pool([task], 1))
        except BrokenProcessPool:
            return task, self.dead(task)

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

    Only the first SIGTERM counts, because the pool sends it again when another worker has ended. SIGINT is ignored: the
    parent receives the interrupt of the terminal and passes it on.
    """
    ignore_signals(signal.SIGINT)
    signal.signal(signal.SIGTERM, _end)


def _end(number: int, _frame: FrameType | None) -> None:
    ignore_signals(signal.SIGTERM)
    sys.exit(128 + number)


def _do_or_end(do: Callable[[T], R], task: T) -> R:
    """One result; on SIGTERM the process exits, because the pool would turn SystemExit into a result and continue."""
    try:
        return do(task)
    except SystemExit as end:
        # By now the context managers have removed their files.
        os._exit(int(end.code or 0))
