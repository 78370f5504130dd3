"""How memory may behave, and what a job says of it."""

import math
from dataclasses import replace

import pytest

from intloom.common.errors import UsageError
from intloom.sim.rtl.job import Job, MemorySettings


@pytest.mark.parametrize("bandwidth", [-1.0, math.nan, math.inf, 1e7, 1e-9])
def test_a_bandwidth_that_the_benches_cannot_count_is_refused(bandwidth):
    with pytest.raises(UsageError, match="bandwidth must be 0, or from 0.001 to 1,000,000 beats per cycle, not"):
        MemorySettings(bandwidth=bandwidth)


@pytest.mark.parametrize("bandwidth", [0.0, 0.001, 0.5, 2.0])
def test_others_are_taken(bandwidth):
    assert MemorySettings(bandwidth=bandwidth).conditions()["bandwidth"] == bandwidth


@pytest.mark.parametrize("wrong", [{"seed": -1}, {"stall_permille": -1}, {"stall_permille": 1000}, {"outstanding": 0}])
def test_settings_out_of_range_are_refused(wrong):
    (name,) = wrong
    with pytest.raises(UsageError, match=f"memory {name} must"):
        MemorySettings(**wrong)


def test_settings_at_the_ends_of_their_ranges_are_taken():
    for right in ({"seed": 0}, {"stall_permille": 0}, {"stall_permille": 999}, {"outstanding": 1}):
        assert MemorySettings(**right).conditions() | right == MemorySettings(**right).conditions()


@pytest.mark.parametrize(("port", "beat"), [(0, 16), (4, 4), (16, 16), (64, 16)])
def test_a_beat_carries_a_word_or_what_the_port_has(port, beat):
    job = Job(word_bytes=16, port_bytes=port, memory_words=100, program_word=3, instructions=5, limit=9)
    assert (job.port_bytes, job.beat_bytes, job.memory_bytes) == (port or 16, beat, 1600)


def test_a_program_may_use_the_words_from_its_base_on():
    """Up to the end of the file, or as many as it is given."""
    job = Job(word_bytes=16, memory_words=100, program_word=3, instructions=5, limit=9)
    assert job.setup().memory_words == 100
    behind = replace(job, memory_base=job.first_byte + 16 * 30)
    assert behind.setup().memory_words == 70
    assert replace(behind, window_words=12).setup().memory_words == 12
    assert replace(behind, window_words=0).setup().memory_words == 0
