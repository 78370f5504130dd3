"""The result of several regions: counts add up, shares are weighted by cycles."""

import pytest

from intloom.sim.merge_results import merge_results
from intloom.sim.result import RunResult


def _region(cycles: int, share: float) -> RunResult:
    return RunResult(backend="rtl", outputs={}, wall_s=1.0, cycles=cycles, clock_stopped={"vec": share})


def test_shares_of_stopped_clocks_are_weighted_by_cycles() -> None:
    merged = merge_results([_region(100, 0.5), _region(300, 0.9)])
    assert merged.cycles == 400
    assert merged.clock_stopped == {"vec": pytest.approx(0.8)}


def test_without_cycles_there_are_no_shares() -> None:
    nothing = RunResult(backend="golden", outputs={}, wall_s=1.0)
    assert merge_results([nothing, nothing]).clock_stopped == {}
