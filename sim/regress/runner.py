"""Runs a regression: in local processes or on a Dask cluster; continues where a stopped run ended."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter

from intloom.sim.processes import Processes, Work
from intloom.sim.regress.case import Case, CaseResult, Outcome, Tools
from intloom.sim.regress.execute import execute
from intloom.sim.regress.store import Store

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


def run_cases(
    cases: Sequence[Case],
    tools: Tools,
    store: Store,
    *,
    where: Processes | None = None,
    report: Report | None = None,
) -> Summary:
    """Run `cases` and keep their results.

    Parameters
    ----------
    cases
        What to run.
    tools
        What cases need from above this package.
    store
        Where results are kept; cases that passed there before, with the same sources, are not run again.
    where
        Where cases run; default: in this process.
    report
        Called with every result as it comes.
    """
    where = where or Processes()
    known = store.passed()
    done = {c.key: known[c.key] for c in cases if c.key in known}
    resumed = len(done)
    waiting = [c for c in cases if c.key not in done]
    # Results come as they complete, so that a stopped run keeps what it has.
    work = Work(do=partial(execute, tools=tools), key=attrgetter("key"), dead=_dead)
    for _, result in work.results(waiting, where):
        store.add(result)
        done[result.key] = result
        if report is not None:
            report(result)
    return Summary(tuple(done[c.key] for c in cases), resumed)


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
