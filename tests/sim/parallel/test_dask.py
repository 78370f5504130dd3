"""A time-parallel run on a local Dask cluster of two worker processes; one is killed, its segment is repeated."""

import os
import signal

import pytest
from distributed import Client, LocalCluster

from intloom.sim.backend import RtlBackend
from intloom.sim.parallel.backend import ParallelRtlBackend
from intloom.sim.rtl.options import RtlOptions
from tests.sim.parallel.networks import require_equal, residual_network

pytestmark = [pytest.mark.slow, pytest.mark.nightly]


def test_a_killed_worker_loses_nothing():
    program, inputs = residual_network()
    plain = RtlBackend(keep_tensors=True).run(program, inputs)
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        with Client(cluster) as client:
            victim = next(iter(client.run(os.getpid).values()))
        killed = []

        def kill_once(_progress):
            if not killed:
                os.kill(victim, signal.SIGKILL)
                killed.append(victim)

        backend = ParallelRtlBackend(
            RtlOptions(jobs=3, dask=cluster.scheduler_address), keep_tensors=True, warm_up=2_000
        )
        require_equal(backend.run(program, inputs, progress=kill_once), plain)
    assert killed
    assert len(backend.plan.segments) == 3
