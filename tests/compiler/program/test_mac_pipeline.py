"""The forecast's MAC unit, against cycles measured on the RTL."""

import pytest

from intloom.compiler.program.mac_pipeline import MacPipeline, conv_shape
from intloom.hw.spec import timing
from intloom.hw.spec.isa import Kind, TableUse, make
from intloom.hw.spec.params import preset

BASE = preset("base")


def times(convs, params=BASE):
    """Start and end of each CONV; none waits for a transfer."""
    pipeline = MacPipeline()
    return [pipeline.run(conv_shape(conv, params), 0) for conv in convs]


@pytest.mark.parametrize("out_blocks", [1, 2, 7, 40])
@pytest.mark.parametrize(("pixels", "in_blocks"), [(1, 11), (16, 4), (64, 2), (64, 3), (130, 2), (200, 1)])
def test_a_steady_array_needs_no_walk_over_its_blocks(pixels, in_blocks, out_blocks):
    shape = conv_shape(make(Kind.CONV, out_w=pixels, in_blocks=in_blocks, out_blocks=out_blocks), BASE)
    quick, walked = MacPipeline(), MacPipeline()
    found = [quick.run(shape, 0) for _ in range(3)]
    shape.__dict__["steady"] = False
    assert [walked.run(shape, 0) for _ in range(3)] == found


def test_an_array_that_is_never_late_takes_its_tiles():
    (first, _), (second, _) = times([make(Kind.CONV, out_w=64, in_blocks=3, out_blocks=5)] * 2)
    assert second - first == 5 * 3 * 64 + timing.MAC_GAP


def test_the_readout_delays_short_sums():
    (_, first), (_, second) = times([make(Kind.CONV, out_w=256, out_blocks=3)] * 2)
    assert second - first == pytest.approx(3 * 256 * 2, abs=5)


@pytest.mark.parametrize(("fields", "cycles"), [({}, 256), ({"out_blocks": 2}, 256), ({"in_blocks": 4}, 163)])
def test_results_wait_for_a_table_that_is_loaded_late(fields, cycles):
    """One of 256 cycles costs all of them, less the time in which the array works."""
    kept, loaded = (
        times([make(Kind.CONV, out_w=32, table=use, **fields)])[0][1] for use in (TableUse.KEEP, TableUse.LOAD)
    )
    assert loaded - kept == pytest.approx(cycles, abs=25)
