"""The result of several regions: counts add up, shares are weighted by cycles, cycles follow each other."""

import numpy as np
import pytest

from intloom.hw.spec.isa import QUEUED_UNITS
from intloom.sim.merge_results import merge_results
from intloom.sim.result import LayerResult, RunResult
from intloom.sim.rtl.status import Pulses

CYCLES = (100, 300, 50)


def _region(number: int) -> RunResult:
    cycles, unit = CYCLES[number], np.arange(len(QUEUED_UNITS), dtype=np.uint64)
    origin = 1000 * number + 7
    layer = LayerResult(
        name=f"layer{number}", op="Conv", macs=1, vector_macs=0, cycles=1, mac_use=1.0, stalls={}, busy={}
    )
    started = tuple(np.array([origin + n, origin + cycles - 10], np.uint64) for n in unit)
    return RunResult(
        backend="rtl", outputs={f"y{number}": np.full(1, number)}, wall_s=1.0 + number, build_s=10.0 * number,
        cycles=cycles, macs=7 ** number, vector_macs=5 ** number, mac_use=0.25 * number, sim_hz=10.0 * 2 ** number,
        dram_bytes=3 ** number, counters={"CYCLES": cycles, f"OWN{number}": 1},
        clock_stopped={"vec": 0.5 / (number + 1)},
        layers=(layer,), tensors={f"t{number}": np.full(2, number)},
        memory=np.zeros(4, np.uint8), pulses=Pulses(started, tuple(s + np.uint64(5) for s in started)), origin=origin,
    )  # fmt: skip


REGIONS = [_region(number) for number in range(len(CYCLES))]


def test_counts_add_up_and_rates_are_those_of_the_whole() -> None:
    merged = merge_results(REGIONS)
    assert (merged.cycles, merged.wall_s, merged.build_s) == (450, 6.0, 30.0)
    assert (merged.macs, merged.vector_macs, merged.dram_bytes) == (1 + 7 + 49, 1 + 5 + 25, 1 + 3 + 9)
    assert merged.counters == {"CYCLES": 450, "OWN0": 1, "OWN1": 1, "OWN2": 1}
    assert merged.mac_use == pytest.approx((300 * 0.25 + 50 * 0.5) / 450)
    assert merged.clock_stopped == {"vec": pytest.approx((100 / 2 + 300 / 4 + 50 / 6) / 450)}
    # 10, 15 and 1.25 seconds.
    assert merged.sim_hz == pytest.approx(450 / 26.25)


def test_names_of_all_regions_are_kept() -> None:
    merged = merge_results(REGIONS)
    assert list(merged.outputs) == ["y0", "y1", "y2"] and list(merged.tensors) == ["t0", "t1", "t2"]
    assert all(merged.outputs[f"y{n}"][0] == merged.tensors[f"t{n}"][1] == n for n in range(3))
    assert [layer.name for layer in merged.layers] == ["layer0", "layer1", "layer2"]
    assert merged.memory is None and merged.regions == tuple(REGIONS)


def test_each_region_starts_at_the_cycle_at_which_the_one_before_ended() -> None:
    merged = merge_results(REGIONS)
    assert merged.pulses is not None and merged.origin == 7
    for unit, (started, done) in enumerate(zip(merged.pulses.started, merged.pulses.done, strict=True)):
        expected = [7 + start + at for start, n in ((0, 0), (100, 1), (400, 2)) for at in (unit, CYCLES[n] - 10)]
        assert started.tolist() == expected and done.tolist() == [cycle + 5 for cycle in expected]
    without = [REGIONS[0], RunResult(backend="rtl", outputs={}, wall_s=1.0, cycles=5)]
    assert merge_results(without).pulses is None


def test_one_region_is_the_result() -> None:
    merged = merge_results(REGIONS[1:2])
    assert merged.regions == (REGIONS[1],) and merged.pulses is REGIONS[1].pulses and merged.memory is REGIONS[1].memory


def test_without_cycles_there_are_no_shares_and_no_rates() -> None:
    nothing = RunResult(backend="golden", outputs={}, wall_s=1.0, clock_stopped={"vec": 0.5}, mac_use=0.5)
    merged = merge_results([nothing, nothing])
    assert (merged.clock_stopped, merged.mac_use, merged.sim_hz) == ({}, 0.0, 0.0)
