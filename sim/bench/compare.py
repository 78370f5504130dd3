"""All benches on workloads of one hardware, in one run: how fast each simulates, against the bare loop."""

from collections.abc import Iterator

from intloom.hw.spec.params import HardwareParams
from intloom.sim.bench.baseline import Baseline
from intloom.sim.bench.measure import Speed, measure_bare, measure_bench
from intloom.sim.bench.workload import dense_program
from intloom.sim.rtl.detailed import DetailedBench
from intloom.sim.rtl.fast import FastBench

_LONG = {"side": 32, "repeats": 3}
_SHORT = {"side": 8, "repeats": 1}
"""The detailed bench, which Python clocks, is too slow for the long workload."""
_BLOCKS = 4
_REPEATS = 3


def compare_benches(params: HardwareParams, baseline: Baseline | None = None) -> Iterator[Speed]:
    """The bare loop first, then the fast bench and the detailed bench.

    With `baseline`, an earlier version, also the bare loop of that version.
    """
    long, inputs = dense_program(params, blocks=_BLOCKS, **_LONG)
    short, _ = dense_program(params, blocks=_BLOCKS, **_SHORT)
    yield from measure_bare(long, inputs, _REPEATS, baseline)
    yield measure_bench("fast bench", FastBench(), long, inputs, _REPEATS)
    yield measure_bench("detailed bench", DetailedBench(), short, inputs, 1)
