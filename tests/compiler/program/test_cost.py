"""What single instructions take."""

import pytest

from intloom.compiler.program.cost import (
    conv_busy,
    move_bursts,
    waiting_bursts,
    window_words,
)
from intloom.hw.spec import timing
from intloom.hw.spec.isa import Kind, make
from intloom.hw.spec.params import preset

BASE = preset("base")


@pytest.mark.parametrize(("pixels", "expected"), [(1, 16), (16, 16), (64, 64), (65, 65), (130, 130), (24, 24)])
def test_a_tile_takes_its_pixels_or_the_columns(pixels, expected):
    conv = make(Kind.CONV, kernel_h=3, kernel_w=3, in_blocks=2, out_blocks=3, out_w=pixels)
    # Where pixels leave the port no time, a block's eight words of constants and a cycle come on top.
    late = 9 if pixels <= 16 else 0
    assert conv_busy(conv, BASE) == 3 * (18 * expected + late)


def test_constants_limit_blocks_of_one_short_tile():
    conv = make(Kind.CONV, out_w=32, out_blocks=10)
    assert conv_busy(conv, BASE) == 10 * (32 * 2)
    assert conv_busy(conv, BASE.replace(lanes=16)) == 10 * (2 * 16 + timing.CONSTANTS_GAP)


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


def test_runs_that_touch_share_bursts():
    shape = {"n0": 16, "n1": 8, "n2": 2}
    assert move_bursts(make(Kind.LOAD, **shape, dram_s1=20, dram_s2=400), BASE) == 16
    assert move_bursts(make(Kind.LOAD, **shape, dram_s1=16, dram_s2=400), BASE) == 2 * 2
    assert move_bursts(make(Kind.LOAD, **shape, dram_s1=16, dram_s2=128), BASE) == 4
    assert move_bursts(make(Kind.LOAD, n0=16, n1=8, dram_s1=20), BASE) == 8


def test_runs_that_touch_share_a_burst_until_their_fifo_is_full():
    shape = {"n0": 16, "n1": 8, "n2": 2}
    few = BASE.replace(axi_outstanding=2)
    for params, runs in ((BASE, 4), (few.replace(axi_burst=256), few.runs_in_flight)):
        assert waiting_bursts(make(Kind.LOAD, **shape, dram_s1=32, dram_s2=512), params) == (16, 16)
        assert waiting_bursts(make(Kind.LOAD, **shape, dram_s1=16, dram_s2=512), params) == (runs * 16, 16)
        assert waiting_bursts(make(Kind.LOAD, **shape, dram_s1=16, dram_s2=128), params) == (runs * 16, 16)
    assert waiting_bursts(make(Kind.LOAD, n0=16, n1=8, dram_s1=32), BASE) == (16, 8)


def test_a_burst_ends_at_the_end_of_its_block():
    assert waiting_bursts(make(Kind.LOAD, n0=64), BASE) == (64, 1)
    assert waiting_bursts(make(Kind.LOAD, dram=60, n0=64), BASE) == (4, 2)
    assert waiting_bursts(make(Kind.STORE, dram=60, n0=8, n1=2, dram_s1=64), BASE) == (4, 4)
