"""Time-parallel runs on the RTL: everything is equal to a plain run, also where an overlap was too short at first."""

import os
import signal
from dataclasses import replace

import numpy as np
import psutil
import pytest

from intloom.common.errors import UsageError
from intloom.compiler.program.program import MemoryTiming
from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.isa import Kind
from intloom.hw.spec.params import preset
from intloom.sim.backend import RtlBackend, open_rtl
from intloom.sim.parallel import run as parallel_run
from intloom.sim.parallel.backend import ParallelRtlBackend
from intloom.sim.parallel.plan import Planner
from intloom.sim.parallel.state import states
from intloom.sim.regress.graphs import GraphMaker
from intloom.sim.rtl.job import InjectedError, MemorySettings
from intloom.sim.rtl.options import RtlOptions
from tests.sim.parallel.networks import require_equal, residual_network, vector_network

SLOW = MemorySettings(read_latency=400, bandwidth=0.25)


@pytest.fixture(scope="module")
def residual():
    return residual_network()


@pytest.fixture(scope="module")
def plain(residual):
    return RtlBackend(keep_tensors=True).run(*residual)


def parallel(jobs, memory=None, **settings):
    options = RtlOptions(jobs=jobs, memory=memory or MemorySettings())
    return ParallelRtlBackend(options, keep_tensors=True, **settings)


@pytest.mark.slow
@pytest.mark.parametrize(("jobs", "warm_up"), [(2, 20_000), (3, 2_000)])
def test_segments_together_are_the_plain_run(residual, plain, jobs, warm_up):
    backend = parallel(jobs, warm_up=warm_up)
    told = []
    require_equal(backend.run(*residual, progress=told.append), plain)
    assert len(backend.plan.segments) == jobs
    assert told
    assert told[-1].layers_done <= told[-1].layers


@pytest.mark.slow
def test_vector_instructions_with_kept_tables():
    program, inputs = vector_network()
    backend = parallel(2, warm_up=2_000)
    require_equal(backend.run(program, inputs), RtlBackend(keep_tensors=True).run(program, inputs))
    assert len(backend.plan.segments) == 2


def test_no_segment_begins_between_convs_that_add_to_the_same_sums():
    maker = GraphMaker(3)
    params = preset("nano").replace(weight_kib=16)
    program = compile_graph(maker.graph(maker.conv(maker.input(5000, 1, 1), 60, 1)), params)
    for warm_up in range(0, 9000, 500):
        planner = Planner(program, MemoryTiming(), warm_up)
        plan = planner.plan(3)
        for cut in (*plan.cuts, *(planner.extended(plan, 0).cuts if plan.cuts else ())):
            following = next(i for i in program.instructions[cut.first :] if i.kind is Kind.CONV)
            assert not following["continue_sums"]


@pytest.mark.slow
def test_an_overlap_that_is_too_short_is_extended(residual):
    """A slow memory takes longer until both runs are in the same state."""
    program, _ = residual
    timing = MemoryTiming(read_latency=SLOW.read_latency, bandwidth=SLOW.bandwidth)
    first = Planner(program, timing, 2_000).plan(2)
    backend = parallel(2, SLOW, warm_up=2_000)
    require_equal(backend.run(*residual), RtlBackend(RtlOptions(memory=SLOW), keep_tensors=True).run(*residual))
    assert backend.plan.cuts[0].first < first.cuts[0].first
    assert backend.plan.cuts[0].last == first.cuts[0].last


@pytest.mark.slow
def test_a_killed_simulator_is_started_again(residual, plain):
    killed = []

    def kill_one(_progress):
        own = [p for p in psutil.Process(os.getpid()).children(recursive=True) if p.name() == "simulator"]
        if own and not killed:
            killed.append(own[0].pid)
            own[0].send_signal(signal.SIGKILL)

    require_equal(parallel(2).run(*residual, progress=kill_one), plain)
    assert killed


@pytest.mark.slow
def test_a_segment_that_differs_from_the_instruction_simulator_leads_to_a_plain_run(
    residual, plain, monkeypatch, caplog
):
    def wrong_states(*arguments):
        for position, state in states(*arguments):
            state.scratch[0] ^= 1
            yield position, state

    monkeypatch.setattr(parallel_run, "states", wrong_states)
    backend = parallel(2)
    require_equal(backend.run(*residual), plain)
    assert backend.plan.segments == [(0, len(residual[0].instructions))]
    assert "memory after instruction" in caplog.text


def test_a_short_program_runs_in_one_simulator(residual):
    program, _ = residual
    assert Planner(program, MemoryTiming(), 10**9).plan(2).segments == [(0, len(program.instructions))]


def test_what_depends_on_all_earlier_cycles_is_refused():
    error = InjectedError(word=3)
    for memory in (MemorySettings(stall_permille=1), replace(SLOW, stall_permille=5), MemorySettings(error=error)):
        with pytest.raises(UsageError, match="without random stalls and bus errors"):
            open_rtl(RtlOptions(jobs=2, memory=memory))


def test_hardware_without_a_trace_port_is_refused(residual):
    program, inputs = residual
    silent = replace(program, params=program.params.replace(trace=False))
    with pytest.raises(UsageError, match="trace port"):
        open_rtl(RtlOptions(jobs=2)).run(silent, inputs)


def test_the_state_before_an_instruction_is_a_copy(residual):
    program, inputs = residual
    (first, early), (last, late) = states(program, inputs, [40, 20])
    assert (first, last) == (20, 40)
    assert np.any(early.scratch != late.scratch)
