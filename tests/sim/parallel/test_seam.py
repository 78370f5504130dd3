"""The check of a seam on made-up recordings: each kind of difference moves the cycle of agreement."""

from dataclasses import replace

import numpy as np
import pytest

from intloom.sim.host.run_program import HostReport
from intloom.sim.parallel.seam import MARGIN, find_seam, same_until
from intloom.sim.parallel.segment import make_segment
from intloom.sim.parallel.state import states
from intloom.sim.rtl.job import MEMORY_BASE
from intloom.sim.rtl.recording import BUS_LAYOUT, Recording
from intloom.sim.rtl.status import Pulses, Status
from tests.sim.parallel.networks import residual_network

OFFSET, FETCH, END = 5_000, 9_000, 10_000
"""Of the earlier segment: cycle in which the overlap's run starts, that of the fetch of the epilogue, last cycle."""


@pytest.fixture(scope="module")
def segment():
    program, inputs = residual_network()
    return make_segment(program, 0, 100, next(states(program, inputs, [0]))[1])


def recording(segment, first, offset, late=()):
    """Pulses of every unit every 100 cycles from `first` on, minus `offset`; those in `late` a cycle later."""
    cycles = np.arange(first, END + 1, 100, dtype=np.uint64) - np.uint64(offset)
    units = [cycles.copy() for _ in range(4)]
    for unit, cycle in late:
        units[unit][list(units[unit]).index(cycle - offset)] += np.uint64(1)
    program = segment.program
    end = program.instructions_at * program.params.word_bytes + len(program.instructions) * 64
    bursts = np.zeros(2, BUS_LAYOUT)
    bursts["cycle"] = [FETCH - 300 - offset, FETCH - offset]
    bursts["address"] = MEMORY_BASE + np.array([end - 512, end - 64])
    bursts["beats"] = 4
    return Recording(
        report=HostReport(
            ended="interrupt",
            fingerprint=0,
            seconds=1,
            first_cycle=0,
            last_cycle=END,
            status={},
            error_index=0,
            counters={},
        ),
        status=Status(0, (), (), 0, 0, 0, ""),
        memory=np.zeros(0, np.uint8),
        pulses=Pulses(tuple(units), tuple(units)),
        snapshots=(),
        writes=None,
        bursts=bursts,
        wall_s=1,
    )


def test_runs_that_agree_from_the_first_common_pulse_on(segment):
    seam = find_seam(segment, recording(segment, 0, 0), recording(segment, 6_000, OFFSET))
    assert seam.offset == OFFSET
    # The earlier one has a pulse 100 cycles before the first of the other.
    assert seam.equal_from == 5_901
    assert seam.equal_to == FETCH - MARGIN
    assert seam.met
    assert seam.equal_from <= seam.cut <= seam.equal_to


@pytest.mark.parametrize("unit", range(4))
def test_a_pulse_of_any_unit_a_cycle_late_moves_the_agreement_behind_it(segment, unit):
    overlap = recording(segment, 6_000, OFFSET, late=[(unit, 7_300)])
    assert find_seam(segment, recording(segment, 0, 0), overlap).equal_from == 7_302


def test_a_difference_after_the_fetch_of_other_instructions_is_no_agreement(segment):
    overlap = recording(segment, 6_000, OFFSET, late=[(1, 9_500)])
    assert not find_seam(segment, recording(segment, 0, 0), overlap).met


@pytest.mark.parametrize("field", ["cycle", "address", "beats", "write", "credit"])
def test_a_burst_that_differs_moves_the_agreement_behind_it(segment, field):
    overlap = recording(segment, 6_000, OFFSET)
    overlap.bursts[field][0] += 1
    assert find_seam(segment, recording(segment, 0, 0), overlap).equal_from == FETCH - 300 + 1 + (field == "cycle")


def test_equal_runs_are_the_same_until_the_first_difference(segment):
    one, other = recording(segment, 0, 0), recording(segment, 0, 0, late=[(2, 4_000)])
    assert same_until(4_000, one, other)
    assert not same_until(4_001, one, other)
    assert not same_until(END, one, replace(one, bursts=one.bursts[:1]))
