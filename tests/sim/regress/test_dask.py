"""Regressions on real Dask clusters: of two worker processes, of which one is killed midway, and of two machines."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack

import pytest
from distributed import Client, LocalCluster

from intloom.compiler.schedule import compile_graph
from intloom.sim.processes import Processes
from intloom.sim.regress.case import Tools
from intloom.sim.regress.graphs import make_graph
from intloom.sim.regress.runner import run_cases
from intloom.sim.regress.store import Store
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
            cases,
            Tools(compile_slowly),
            Store(tmp_path),
            where=Processes(dask=cluster.scheduler_address),
            report=kill_once,
        )
    assert killed
    assert summary.ok, [r.message for r in summary.failed]
    assert [r.name for r in summary.results] == [c.name for c in cases]


ADDRESSES = {"head": "10.77.0.1", "node": "10.77.0.2"}


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


@pytest.fixture
def machines():
    """Two network namespaces with a cable between them; each has the network of a machine of its own."""
    names = {machine: f"intloom-{os.getpid()}-{machine}" for machine in ADDRESSES}
    with ExitStack() as stack:
        try:
            for name in names.values():
                ip("netns", "add", name)
                stack.callback(ip, "netns", "del", name)
            ip("link", "add", "cable", "netns", names["head"], "type", "veth", "peer", "cable", "netns", names["node"])
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"network namespaces need the command ip and the rights of root: {error}")
        for machine, name in names.items():
            ip("-n", name, "addr", "add", f"{ADDRESSES[machine]}/24", "dev", "cable")
            for link in ("lo", "cable"):
                ip("-n", name, "link", "set", link, "up")
        yield names


@pytest.mark.nightly
def test_a_regression_runs_on_another_machine(machines, tmp_path):
    address = f"tcp://{ADDRESSES['head']}:8786"

    def on(machine, *words):
        return ["ip", "netns", "exec", machines[machine], sys.executable, "-m", *map(str, words)]

    scheduler = on("head", "dask", "scheduler", "--port", 8786, "--no-dashboard")
    worker = on("node", "dask", "worker", address, "--nworkers", 1, "--nthreads", 1, "--no-dashboard")
    with ExitStack() as stack:
        for number, command in enumerate((scheduler, worker)):
            log = stack.enter_context((tmp_path / f"{number}.log").open("w"))
            process = stack.enter_context(subprocess.Popen(command, stdout=log, stderr=log, cwd=tmp_path))
            stack.callback(process.terminate)
        regress = on(
            "head", "intloom", "regress", "smoke", "--case", "conv-*", "--dask", address, "-o", tmp_path / "out"
        )
        subprocess.run(regress, check=True, capture_output=True, timeout=300)
    (case,) = json.loads((tmp_path / "out/results.json").read_text())["cases"]
    assert case["outcome"] == "pass" and case["cycles"] > 0
    assert f"{ADDRESSES['node']}:" in (tmp_path / "0.log").read_text(), "the worker is on the other machine"
