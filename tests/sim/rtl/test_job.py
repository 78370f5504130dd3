"""How memory may behave."""

import math

import pytest

from intloom.common.errors import UsageError
from intloom.sim.rtl.job import MemorySettings


@pytest.mark.parametrize("bandwidth", [-1.0, math.nan, math.inf, 1e7, 1e-9])
def test_a_bandwidth_that_the_benches_cannot_count_is_refused(bandwidth):
    with pytest.raises(UsageError, match="bandwidth must be 0, or from 0.001 to 1,000,000 beats per cycle, not"):
        MemorySettings(bandwidth=bandwidth)


@pytest.mark.parametrize("bandwidth", [0.0, 0.001, 0.5, 2.0])
def test_others_are_taken(bandwidth):
    assert MemorySettings(bandwidth=bandwidth).conditions()["bandwidth"] == bandwidth
