"""Where segments are simulated: in processes of this machine, or on a Dask cluster."""

import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from intloom.common.errors import SimulationError
from intloom.common.temporary_files import temporary_folder
from intloom.sim.dask_cluster import dask_client
from intloom.sim.rtl.fast import FastBench
from intloom.sim.rtl.job import RunFiles
from intloom.sim.rtl.recording import LoadedJob, Recording, StoppedSimulationError, record
from intloom.sim.rtl.status import Status

_ATTEMPTS = 4
"""How often a segment is simulated at most if its simulator is killed."""

Key = tuple[int, int]
"""First instruction and end of a segment."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Task:
    """One simulation, as plain data, for any process on any machine."""

    verilog: str
    loaded: LoadedJob


class CancelledSimulationError(Exception):
    """Another segment failed, or the user interrupted the run."""


def simulate(task: Task, watch: Callable[[Status], None] | None = None) -> Recording:
    """Run a task; a simulator that is killed is started again."""
    bench = FastBench()
    simulator = bench.build(task.verilog)
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            with temporary_folder("intloom-rtl-") as folder:
                return record(bench, simulator, task.loaded, RunFiles(folder), watch)
        except StoppedSimulationError as error:
            if not error.killed or attempt == _ATTEMPTS:
                raise
    raise AssertionError("unreachable")


class Workers:
    """Simulates tasks, several at once.

    Parameters
    ----------
    executor
        Threads of this process, each of which watches a simulator, or the workers of a Dask cluster, where a task whose
        worker dies is repeated on another.
    watched
        Whether the tasks run in this process. Progress is else that of ended tasks.
    died
        Exceptions of tasks whose workers died too often.
    """

    def __init__(self, executor: Executor, *, watched: bool, died: tuple[type[BaseException], ...] = ()) -> None:
        self._executor, self._watched, self._died = executor, watched, died
        self._status: dict[Key, Status] = {}
        self._keys: dict[Future[Recording], Key] = {}
        self.cancelled = threading.Event()

    def submit(self, key: Key, task: Task) -> Future[Recording]:
        """Start a task as soon as a worker is free."""

        def watch(status: Status) -> None:
            # An exception from here ends the simulator.
            if self.cancelled.is_set():
                raise CancelledSimulationError
            self._status[key] = status

        with warnings.catch_warnings():
            # A memory image is large; Dask advises to send it apart, but then it is lost with the worker that holds it.
            warnings.filterwarnings("ignore", message="Sending large graph")
            future = self._executor.submit(simulate, task, *((watch,) if self._watched else ()))
        self._keys[future] = key
        return future

    def result(self, future: Future[Recording]) -> Recording:
        """The recording of a task that has ended."""
        try:
            recording = future.result()
        except self._died as error:
            raise SimulationError(f"workers died while they simulated a segment: {error}") from None
        self._status[self._keys[future]] = recording.status
        return recording

    def cycles(self) -> int:
        """Cycles simulated so far by all tasks, as far as they are known."""
        return sum(status.cycle for status in self._status.values())

    def layers(self) -> int:
        """Layers that have ended, without those of overlaps, which are counted in a longer task with the same start."""
        # Of equal starts the last in ascending order is the longest.
        longest = dict(sorted(self._status))
        return sum(self._status[key].layers for key in longest.items())


@contextmanager
def open_workers(jobs: int, dask: str | None) -> Iterator[Workers]:
    """Workers on this machine, or on the Dask cluster at this address; leaving the block early ends all tasks."""
    if dask is not None:
        with dask_client(dask) as client:
            from distributed import KilledWorker

            executor: Any = client.get_executor(pure=False)
            try:
                yield Workers(executor, watched=False, died=(KilledWorker,))
            finally:
                executor.shutdown(wait=False)
        return
    with ThreadPoolExecutor(jobs) as pool:
        workers = Workers(pool, watched=True)
        try:
            yield workers
        except BaseException:
            workers.cancelled.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
