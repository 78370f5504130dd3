"""Runs a regression: in local processes or on a Dask cluster; continues where a stopped run ended."""

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

from intloom.sim.dask_cluster import dask_client
from intloom.sim.regress.case import Case, CaseResult, Outcome, Tools
from intloom.sim.regress.execute import execute
from intloom.sim.regress.store import Store
from intloom.sim.regress.worker import clean_up_when_ended, execute_or_end

_RETRIES = 5
"""How often Dask repeats a case whose worker died."""

Report = Callable[[CaseResult], None]


@dataclass(frozen=True)
class Summary:
    """A whole regression."""

    results: tuple[CaseResult, ...]
    resumed: int
    """Cases that had passed in an earlier run and were not run again."""

    @property
    def ok(self) -> bool:
        """Whether every case passed."""
        return all(r.outcome is Outcome.PASS for r in self.results)

    @property
    def failed(self) -> tuple[CaseResult, ...]:
        """Cases that did not pass."""
        return tuple(r for r in self.results if r.outcome is not Outcome.PASS)


@dataclass(frozen=True)
class Processes:
    """Where cases run."""

    jobs: int = 1
    """Processes on this machine."""
    dask: str | None = None
    """Address of a Dask scheduler, to run the cases there instead."""


def run_cases(
    cases: Sequence[Case],
    tools: Tools,
    folder: Path,
    *,
    where: Processes | None = None,
    resume: bool = True,
    report: Report | None = None,
) -> Summary:
    """Run `cases` and keep their results in `folder`.

    Parameters
    ----------
    cases
        What to run.
    tools
        What cases need from above this package.
    folder
        Where results are kept; with `resume`, cases that passed there before, with the same sources, are not
        run again.
    where
        Where cases run; default: in this process.
    resume
        Go on where the last run in `folder` ended.
    report
        Called with every result as it comes.
    """
    where = where or Processes()
    store = Store(folder)
    known = store.passed() if resume else {}
    if not resume:
        store.forget({c.key for c in cases})
    done = {c.key: known[c.key] for c in cases if c.key in known}
    resumed = len(done)
    waiting = [c for c in cases if c.key not in done]
    # Both give results as they complete, so that a stopped run keeps what it has.
    results = _on_dask(waiting, tools, where.dask) if where.dask is not None else _here(waiting, tools, where.jobs)
    for result in results:
        store.add(result)
        done[result.key] = result
        if report is not None:
            report(result)
    return Summary(tuple(done[c.key] for c in cases), resumed)


def _here(cases: Sequence[Case], tools: Tools, jobs: int) -> Iterator[CaseResult]:
    if jobs <= 1:
        for case in cases:
            yield execute(case, tools)
        return
    left = {c.key: c for c in cases}
    try:
        for result in _side_by_side(cases, tools, jobs):
            del left[result.key]
            yield result
    except BrokenProcessPool:
        # One of them has taken its process down, and with it the pool: each of the rest in a process of its own.
        for case in left.values():
            yield _alone(case, tools)


def _side_by_side(cases: Sequence[Case], tools: Tools, jobs: int) -> Iterator[CaseResult]:
    # Fresh processes: forking one that holds threads (numpy, onnxruntime) may deadlock.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=clean_up_when_ended) as pool:
        futures = [pool.submit(execute_or_end, case, tools) for case in cases]
        try:
            for future in as_completed(futures):
                yield future.result()
        except BaseException:
            # Without the cancellation the pool would finish all waiting cases first.
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _alone(case: Case, tools: Tools) -> CaseResult:
    try:
        return next(_side_by_side([case], tools, 1))
    except BrokenProcessPool:
        return _dead(case)


def _dead(case: Case) -> CaseResult:
    return CaseResult(
        suite=case.suite,
        name=case.name,
        key=case.key,
        outcome=Outcome.ERROR,
        seconds=0.0,
        message="the process that ran it died, perhaps for want of memory",
        seed=case.seed,
        reproduce=case.reproduce,
    )


def _on_dask(cases: Sequence[Case], tools: Tools, address: str) -> Iterator[CaseResult]:
    with dask_client(address) as client:
        from distributed import KilledWorker
        from distributed import as_completed as dask_completed

        # A case may run twice when its worker dies, so its key alone names it.
        futures = {
            client.submit(execute, c, tools, key=f"case-{c.key}", retries=_RETRIES, pure=False): c for c in cases
        }
        for future in dask_completed(list(futures)):
            try:
                yield future.result()
            except KilledWorker:
                yield _dead(futures[future])
