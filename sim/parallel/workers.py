"""Where segments are simulated: in processes of this machine, or on a Dask cluster."""

import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

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


class Workers(Protocol):
    """Simulates tasks, several at once."""

    def submit(self, key: Key, task: Task) -> Future[Recording]:
        """Start a task as soon as a worker is free."""

    def result(self, future: Future[Recording]) -> Recording:
        """The recording of a task that has ended."""

    def cycles(self) -> int:
        """Cycles simulated so far by all tasks, as far as they are known."""

    def layers(self) -> int:
        """Layers that have ended so far."""


class LocalWorkers:
    """Simulator processes on this machine, each watched by a thread."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._status: dict[Key, Status] = {}
        self.cancelled = threading.Event()

    def submit(self, key: Key, task: Task) -> Future[Recording]:
        """Start a task as soon as a thread is free."""

        def watch(status: Status) -> None:
            # An exception from here ends the simulator.
            if self.cancelled.is_set():
                raise CancelledSimulationError
            self._status[key] = status

        return self._executor.submit(simulate, task, watch)

    def result(self, future: Future[Recording]) -> Recording:
        """The recording of a task that has ended."""
        return future.result()

    def cycles(self) -> int:
        """Cycles simulated so far by all tasks."""
        return _cycles(self._status)

    def layers(self) -> int:
        """Layers that have ended so far."""
        return _layers(self._status)


class DaskWorkers:
    """Workers of a Dask cluster. A task whose worker dies is repeated on another; progress is that of ended tasks."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._status: dict[Key, Status] = {}
        self._keys: dict[Future[Recording], Key] = {}

    def submit(self, key: Key, task: Task) -> Future[Recording]:
        """Send a task to the cluster."""
        with warnings.catch_warnings():
            # A memory image is large; Dask advises to send it apart, but then it is lost with the worker that holds it.
            warnings.filterwarnings("ignore", message="Sending large graph")
            future: Future[Recording] = self._executor.submit(simulate, task)
        self._keys[future] = key
        return future

    def result(self, future: Future[Recording]) -> Recording:
        """The recording of a task that has ended."""
        from distributed import KilledWorker

        try:
            recording = future.result()
        except KilledWorker as error:
            raise SimulationError(f"workers died while they simulated a segment: {error}") from None
        self._status[self._keys[future]] = recording.status
        return recording

    def cycles(self) -> int:
        """Cycles of all ended tasks."""
        return _cycles(self._status)

    def layers(self) -> int:
        """Layers that ended in them."""
        return _layers(self._status)


def _cycles(found: Mapping[Key, Status]) -> int:
    return sum(status.cycle for status in found.values())


def _layers(found: Mapping[Key, Status]) -> int:
    """Layers that have ended, without those of overlaps, which are counted in a longer task with the same start."""
    # Of equal starts the last in ascending order is the longest.
    longest = dict(sorted(found))
    return sum(found[key].layers for key in longest.items())


@contextmanager
def open_workers(jobs: int, dask: str | None) -> Iterator[Workers]:
    """Workers on this machine, or on the Dask cluster at this address; leaving the block early ends all tasks."""
    if dask is not None:
        with dask_client(dask) as client:
            executor: Any = client.get_executor(pure=False)
            try:
                yield DaskWorkers(executor)
            finally:
                executor.shutdown(wait=False)
        return
    with ThreadPoolExecutor(jobs) as pool:
        workers = LocalWorkers(pool)
        try:
            yield workers
        except BaseException:
            workers.cancelled.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
