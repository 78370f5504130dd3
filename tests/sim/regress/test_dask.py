"""A regression on a real local Dask cluster of two worker processes; one is killed midway and nothing is lost."""

import os
import signal
import time

import pytest
from distributed import Client, LocalCluster

from intloom.compiler.schedule import compile_graph
from intloom.sim.processes import Processes
from intloom.sim.regress.case import Tools
from intloom.sim.regress.graphs import make_graph
from intloom.sim.regress.runner import run_cases
from intloom.sim.regress.suites import suite

pytestmark = pytest.mark.slow
SECONDS = 0.6
"""Long enough that the killed worker is at work on a case."""


def compile_slowly(graph, params):
    """A compiler that takes its time and then says which graph it had, by way of its error."""
    time.sleep(SECONDS)
    return compile_graph(graph, params)


def test_a_killed_worker_loses_nothing(tmp_path):
    cases = [c for c in suite("smoke") if c.graph != "conv"]
    assert all(make_graph(c.graph, c.seed, dict(c.arguments)) for c in cases)
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        with Client(cluster) as client:
            victim = next(iter(client.run(os.getpid).values()))
        killed = []

        def kill_once(_result):
            if not killed:
                os.kill(victim, signal.SIGKILL)
                killed.append(victim)

        summary = run_cases(
            cases, Tools(compile_slowly), tmp_path, where=Processes(dask=cluster.scheduler_address), report=kill_once
        )
    assert killed
    assert summary.ok, [r.message for r in summary.failed]
    assert [r.name for r in summary.results] == [c.name for c in cases]
