"""The fast bench and the bare loop on a workload of one hardware, in one run."""

from collections.abc import Iterator

from intloom.hw.spec.params import HardwareParams
from intloom.sim.bench.baseline import Baseline
from intloom.sim.bench.measure import Speed, measure_bare, measure_bench
from intloom.sim.bench.workload import dense_program
from intloom.sim.rtl.fast import FastBench

_LONG = {"side": 32, "repeats": 3}
_BLOCKS = 4
_REPEATS = 3


def compare_benches(params: HardwareParams, baseline: Baseline | None = None) -> Iterator[Speed]:
    """The bare loop first, then the fast bench.

    With `baseline`, an earlier version, also the bare loop of that version.
    """
    long, inputs = dense_program(params, blocks=_BLOCKS, **_LONG)
    yield from measure_bare(long, inputs, _REPEATS, baseline)
    yield measure_bench("fast bench", FastBench(), long, inputs, _REPEATS)
