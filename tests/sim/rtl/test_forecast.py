"""The compiler's forecast against the RTL's own cycles, layer by layer."""

import pytest

from compiler.program.forecast import forecast
from compiler.program.port import MemoryTiming
from compiler.schedule import compile_graph
from hw.spec.params import preset
from sim.backend import RtlBackend
from sim.rtl.job import MemorySettings
from tests.support.graph_maker import GraphMaker

WITHIN = 0.03
SHORT = 2000
"""Layers of fewer cycles are judged together: a few cycles of fill and drain are more than 3 % of them."""


@pytest.fixture(scope="module")
def case():
    maker = GraphMaker(1)
    x = maker.conv(maker.input(3, 64, 80), 16, 3, stride=2)
    x = maker.add(maker.conv(x, 16, 3), x)
    x = maker.conv(maker.max_pool(x, 5, pad=2), 64, 1)
    graph = maker.graph(maker.conv(x, 96, 3, stride=2))
    return compile_graph(graph, preset("base")), maker.random_inputs()


@pytest.mark.slow
@pytest.mark.parametrize(("latency", "bandwidth"), [(100, 1.0), (100, 0.0), (400, 0.5)])
def test_every_layer_is_forecast_within_three_percent(case, latency, bandwidth):
    program, inputs = case
    memory = MemorySettings(read_latency=latency, bandwidth=bandwidth)
    measured = RtlBackend(memory=memory).run(program, inputs)
    timing = MemoryTiming(read_latency=latency, write_latency=memory.write_latency, bandwidth=bandwidth)
    expected = forecast(program.instructions, program.provenance, len(program.layers), program.params, timing)
    assert expected.cycles == pytest.approx(measured.cycles, rel=WITHIN)
    for layer, cycles in zip(measured.layers, expected.layers, strict=True):
        if layer.cycles >= SHORT:
            assert cycles == pytest.approx(layer.cycles, rel=WITHIN), layer.name
