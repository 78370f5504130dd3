"""The timing model: against cycles measured on the RTL, and in its parts."""

import pytest

from compiler.program.program import Provenance
from compiler.schedule import compile_graph
from compiler.schedule.cost import conv_busy, predict, window_words
from hw.spec.isa import Kind, make
from hw.spec.params import preset
from tests.support.graph_maker import GraphMaker

BASE = preset("base")


@pytest.mark.parametrize(("pixels", "expected"), [(1, 16), (16, 16), (64, 64), (65, 65), (130, 130), (20, 20)])
def test_a_tile_takes_its_pixels_or_the_columns(pixels, expected):
    conv = make(Kind.CONV, kernel_h=3, kernel_w=3, in_blocks=2, out_blocks=3, out_w=pixels)
    assert conv_busy(conv, BASE) == 3 * 18 * expected


def test_a_slow_drain_limits_short_sums():
    params = preset("small")
    conv = make(Kind.CONV, out_w=32)
    assert conv_busy(conv, params) == 32 * params.cols // params.lanes


def test_maxima_along_an_axis_read_each_word_once():
    shape = {"out_h": 4, "out_w": 10, "blocks": 2, "in_h": 9, "in_w": 9}
    assert window_words(make(Kind.VMAX, kernel_w=5, **shape)) == 2 * 4 * 14
    assert window_words(make(Kind.VMAX, kernel_h=5, **shape)) == 2 * 10 * 8
    assert window_words(make(Kind.VMAX, kernel_w=5, stride_w=2, **shape)) == 2 * 4 * 10 * 5
    assert window_words(make(Kind.VAVG, kernel_w=5, **shape)) == 2 * 4 * 10 * 5


def test_units_overlap_unless_they_wait():
    work = [make(Kind.VCOPY, out_w=1000), make(Kind.CONV, out_w=1000)]
    origins = [Provenance(layer=0, tile=0)] * 2
    beside = predict(work, origins, BASE, 1).cycles
    after = predict([work[0], work[1].with_fields(wait_vec=1)], origins, BASE, 1).cycles
    assert beside < 1300
    assert 2000 < after < 2300


def test_a_full_queue_holds_the_fetcher_up():
    loads = [make(Kind.LOAD, n0=1, wait_vec=1), *[make(Kind.LOAD, n0=1)] * 20]
    slow = make(Kind.VCOPY, out_w=5000)
    late = make(Kind.CONV, out_w=64)
    origins = [Provenance(layer=0, tile=0)] * 23
    assert predict([slow, *loads, late], origins, BASE, 1).cycles > 5000 + 64
    assert predict([slow, late, *loads], origins, BASE, 1).layers[0] > 5000


def test_layers_add_up_to_the_end_of_the_last():
    maker = GraphMaker(0)
    x = maker.conv(maker.input(16, 40, 40), 32, 3)
    program = compile_graph(maker.graph(maker.conv(x, 16, 3)), BASE)
    assert sum(layer.predicted_cycles for layer in program.layers) == program.predicted_cycles


def test_two_convolutions_as_measured_on_the_rtl():
    """8422 cycles on the RTL of preset base with a memory latency of 100 cycles."""
    maker = GraphMaker(1)
    x = maker.conv(maker.input(3, 32, 40), 16, 3, stride=2)
    program = compile_graph(maker.graph(maker.conv(x, 32, 3)), BASE.replace(weight_kib=64))
    assert program.predicted_cycles == pytest.approx(8422, rel=0.03)
