"""Convolutions over a sequence beyond the instruction's kernel and stride: rows that read the only row; long crops."""

import pytest

from intloom.compiler.ir import AvgPool
from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.arith import Affine
from intloom.hw.spec.isa import Kind
from intloom.hw.spec.params import PRESETS, preset
from intloom.sim.backend import RtlBackend
from intloom.sim.regress.graphs import GraphMaker
from tests.compiler.schedule.test_compile import assert_equal_to_golden, fitting_program
from tests.support.golden import assert_golden


def sequence(seed: int, length: int, taps: int, dilation: int, **changes: int) -> tuple[GraphMaker, str]:
    """A convolution without padding between two others."""
    m = GraphMaker(seed)
    channels = int(m.rng.integers(1, 40))
    x = m.conv(m.input(5, 1, length), channels)
    window = {"kernel": (1, taps), "dilation": (1, dilation), "pads": (0, 0, 0, 0)}
    group = channels if changes.pop("depthwise", 0) else 1
    return m, m.conv(m.conv(x, channels if group > 1 else 19, group=group, **window, **changes), 3)


WINDOWS = {
    "far": (400, 3, 64, {}),
    "apart": (700, 5, 150, {}),
    "near": (900, 3, 16, {}),
    "strided": (400, 2, 133, {"stride": (1, 3)}),
    "long": (300, 65, 1, {}),
    "dilated": (500, 28, 15, {"stride": (1, 2)}),
    "stride": (400, 9, 1, {"stride": (1, 7)}),
    "few": (400, 3, 1, {"stride": (1, 50)}),
    "long stride": (600, 60, 1, {"stride": (1, 5)}),
    "most": (400, 225, 1, {}),
    "depthwise": (300, 33, 2, {"depthwise": 1}),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_equal_to_golden(name, seed):
    *window, changes = WINDOWS[name]
    for number, params in enumerate(PRESETS.values()):
        m, output = sequence(seed + number, *window, **changes)
        assert_equal_to_golden(m.graph(output), m, fitting_program(m.graph(output), params, keep=number == 1))


def test_pixels_between_taps_are_not_loaded():
    """A tile of a sequence that the scratchpad cannot hold reads as many runs as the kernel has taps."""
    m, output = sequence(1, 9000, 3, 4000)
    program = compile_graph(m.graph(output), preset("base"))
    runs = [i for i in program.instructions if i.kind is Kind.LOAD and i["dram_s1"] == 4000]
    assert runs
    assert {i["n1"] for i in runs} == {3}
    assert_equal_to_golden(m.graph(output), m, program)


def _assert_equal_on_the_rtl(m: GraphMaker, output: str) -> None:
    graph = m.graph(output)
    assert_golden(graph, compile_graph(graph, preset("nano")), m.random_inputs(), RtlBackend())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["apart", "long", "long stride"])
def test_on_the_rtl(name):
    *window, changes = WINDOWS[name]
    m, output = sequence(2, *window, **changes)
    _assert_equal_on_the_rtl(m, output)


@pytest.mark.slow
def test_a_crop_on_the_rtl():
    m = GraphMaker(5)
    x, one = m.conv(m.input(5, 9, 40), 7), Affine(1, 0, 0, 0)
    cropped = m.node(AvgPool, (x,), (7, 4, 25), kernel=(1, 1), pads=(-3, -20, -2, 5), affine=one, zp_in=-7)
    _assert_equal_on_the_rtl(m, m.conv(cropped, 3))
