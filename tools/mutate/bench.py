"""Runs a component's bench in copies of this process: once without a fault, then once for each fault."""

import contextlib
import os
import pickle
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import pytest
from amaranth.hdl import Fragment

from tools.mutate.hook import elaborations
from tools.mutate.sites import Extent, Mutant, Site, plant, sites

SEED_VARIABLE = "INTLOOM_SEED"
ALONE_VARIABLE = "INTLOOM_ALONE"
"""Tests share no elaborated component, so that it is known which of them have a fault."""
_OPTIONS = ("-q", "-x", "-p", "no:cacheprovider", "--no-header", "--no-summary", "--tb=short")
_PASSED, _FAILED = 0, 1
"""Exit codes of pytest; all others are errors."""
_SPARE_SECONDS, _SPARE_FACTOR = 1.5, 3
"""A fault may let a simulation hang: the CPU time of a test is limited by that without a fault."""
_BROKEN, _NOT_PLANTED = 71, 72
"""Exit codes of a run that says nothing of the fault."""


@dataclass
class Test:
    """A test of the bench."""

    seconds: float = 0.0
    """CPU time."""
    extents: dict[Site, Extent] = field(default_factory=dict)
    """What it elaborates of the component, with the most bits."""

    def has(self, mutant: Mutant) -> bool:
        """Whether the fault is in a component of this test."""
        extent = self.extents.get(mutant.site)
        return extent is not None and extent.bits[0] <= mutant.bit < extent.bits[1]


@dataclass(frozen=True)
class Outcome:
    """What the bench says of a fault."""

    found: bool
    by: str = ""
    """The test that failed, or that did not end."""


def _argument(item: pytest.Item) -> str:
    """What chooses a test on the command line: its name alone is relative to pytest's root folder."""
    return f"{item.path}::{item.nodeid.partition('::')[2]}"


class _Measure:
    """Plugin of pytest: CPU time and elaborations of every test."""

    def __init__(self) -> None:
        self.tests: dict[str, Test] = {}
        self._now = Test()

    def visit(self, _component: Any, fragment: Fragment) -> None:
        """Add the sites of an elaboration to those of the test."""
        known = self._now.extents
        for site, extent in sites(fragment).items():
            if site not in known or extent.bits[1] > known[site].bits[1]:
                known[site] = extent

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Measure one test."""
        self._now, start = Test(), time.process_time()
        result = yield
        self._now.seconds = time.process_time() - start
        if self._now.extents:
            self.tests[_argument(item)] = self._now
        return result


class _Failure:
    """Plugin of pytest: the test that runs or has failed, in a file, since a test that takes too long is ended."""

    def __init__(self, path: Path, seconds: Mapping[str, float]) -> None:
        self._path, self._seconds = path, seconds

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Write down which test runs, and limit its CPU time."""
        self._path.write_text(f"{_argument(item)}\ndoes not end", encoding="utf-8")
        signal.setitimer(signal.ITIMER_PROF, _SPARE_SECONDS + _SPARE_FACTOR * self._seconds[_argument(item)])
        result = yield
        signal.setitimer(signal.ITIMER_PROF, 0)
        return result

    @pytest.hookimpl
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        """Write down which test failed."""
        if call.excinfo is not None:
            self._path.write_text(f"{_argument(item)}\n{call.excinfo.typename}", encoding="utf-8")


def _forked(job: Callable[[], int], log: Path) -> int:
    """Exit code of a job in a copy of this process, negative after a signal. The copy ends with this process."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        _run_copy(job, log)
    try:
        _, status = os.waitpid(child, 0)
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    return os.waitstatus_to_exitcode(status)


@contextlib.contextmanager
def _ended_by_errors() -> Iterator[None]:
    complete = False
    try:
        yield
        complete = True
    finally:
        if not complete:
            traceback.print_exc()
            os._exit(_BROKEN)


def _run_copy(job: Callable[[], int], log: Path) -> NoReturn:
    code = _BROKEN
    try:
        # A group of its own: simulators that a test starts end with it.
        os.setpgid(0, 0)
        os.environ[ALONE_VARIABLE] = "1"
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(output, 1)
        os.dup2(output, 2)
        code = job()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


class Bench:
    """The bench of one component."""

    def __init__(self, component: str, files: Sequence[str], folder: Path) -> None:
        self.component = component
        self._files = files
        self._folder = folder
        self._log = folder / "pytest.log"
        self._kills: Counter[str] = Counter()
        self.tests: dict[str, Test] = {}
        os.environ[SEED_VARIABLE] = "1"

    def measure(self) -> None:
        """Run all tests without a fault."""
        result = self._folder / "tests"

        def job() -> int:
            plugin = _Measure()
            with elaborations(self.component, plugin.visit):
                code = int(pytest.main([*_OPTIONS, *self._files], plugins=[plugin]))
            result.write_bytes(pickle.dumps(plugin.tests))
            return code

        # Copies of this process need not import what the bench does.
        with self._log.open("w", encoding="utf-8") as log, contextlib.redirect_stdout(log):
            pytest.main([*_OPTIONS, "--collect-only", *self._files])
        if _forked(job, self._log) != _PASSED:
            raise SystemExit(f"the tests must pass:\n{self._log.read_text(encoding='utf-8')[-2000:]}")
        self.tests = pickle.loads(result.read_bytes())
        if not self.tests:
            raise SystemExit(f"no test of {' '.join(self._files)} elaborates {self.component}")

    def extents(self) -> dict[Site, Extent]:
        """All sites of all tests, with the most bits."""
        extents: dict[Site, Extent] = {}
        for test in self.tests.values():
            for site, extent in test.extents.items():
                if site not in extents or extent.bits[1] > extents[site].bits[1]:
                    extents[site] = extent
        return extents

    def _order(self, mutant: Mutant) -> list[str]:
        """Tests that have the fault: first those that found most of the others, then the short ones."""
        names = [name for name, test in self.tests.items() if test.has(mutant)]
        return sorted(names, key=lambda n: (-self._kills[n] / (1 + self.tests[n].seconds), self.tests[n].seconds))

    def run(self, mutant: Mutant) -> Outcome:
        """Whether a test fails with this fault."""
        names = self._order(mutant)
        failure = self._folder / "failure"
        planted = False

        def visit(_component: Any, fragment: Fragment) -> None:
            nonlocal planted
            # An error here ends the process: it must not look like a test that fails.
            with _ended_by_errors():
                planted |= plant(fragment, mutant)

        def job() -> int:
            plugin = _Failure(failure, {name: self.tests[name].seconds for name in names})
            with elaborations(self.component, visit):
                code = int(pytest.main([*_OPTIONS, *names], plugins=[plugin]))
            return code if planted else _NOT_PLANTED

        code = _forked(job, self._log)
        if code == _PASSED:
            return Outcome(found=False)
        if code not in {_FAILED, -signal.SIGPROF}:
            text = self._log.read_text(encoding="utf-8")
            raise SystemExit(f"the bench ends with {code}:\n{mutant}\n{text[-2000:]}")
        name, _, how = failure.read_text(encoding="utf-8").rpartition("\n")
        self._kills[name] += 1
        return Outcome(found=True, by=f"{name} {how}")

    def elaborated(self, mutants: Sequence[Mutant], visit: Callable[[int, Any, Fragment], None]) -> None:
        """Call `visit` with the first elaboration that has a fault's site, in the test that elaborates most of it."""
        for number, mutant in enumerate(mutants):
            name = max(self._order(mutant), key=lambda n: len(self.tests[n].extents))
            _forked(partial(self._visit_one, number, mutant, name, visit), self._log)

    def _visit_one(self, number: int, mutant: Mutant, name: str, visit: Callable[[int, Any, Fragment], None]) -> int:
        def first(component: Any, fragment: Fragment) -> None:
            extent = sites(fragment).get(mutant.site)
            if extent is not None and extent.bits[0] <= mutant.bit < extent.bits[1]:
                visit(number, component, fragment)
                os._exit(0)

        with elaborations(self.component, first):
            return int(pytest.main([*_OPTIONS, name]))
