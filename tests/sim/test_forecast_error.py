"""The compiler's forecast against the RTL's own cycles, chain by chain."""

import pytest

from intloom.compiler.schedule import compile_graph
from intloom.flow.networks import load_network
from intloom.hw.spec.params import preset
from intloom.sim.backend import RtlBackend
from intloom.sim.forecast_error import compare_forecast, worst
from intloom.sim.regress.graphs import GraphMaker
from intloom.sim.rtl.job import MemorySettings
from intloom.sim.rtl.options import RtlOptions

WITHIN = 0.03
_USUAL = MemorySettings(read_latency=100, bandwidth=1.0)
LEAST = 4000
"""Shorter chains count with the whole only: filling and draining the pipelines is more than 3 % of them."""


@pytest.fixture(scope="module")
def case():
    maker = GraphMaker(1)
    x = maker.conv(maker.input(3, 96, 96), 16, 3, stride=2)
    x = maker.add(maker.conv(x, 16, 3), x)
    x = maker.conv(maker.max_pool(x, 5, pad=2), 64, 1)
    graph = maker.graph(maker.conv(x, 96, 3, stride=2))
    # Every tensor goes through memory: a fused program hides its latency.
    return compile_graph(graph, preset("base"), effort=0), maker.random_inputs()


@pytest.mark.slow
@pytest.mark.parametrize("size", [160, pytest.param(320, marks=pytest.mark.nightly)])
def test_every_chain_of_a_detector_is_forecast_within_three_percent(size):
    network = load_network("yolov8n", size)
    program = compile_graph(network.graph, preset("base"))
    measured = RtlBackend(RtlOptions(memory=_USUAL)).run(program, network.inputs)
    whole, found = compare_forecast(program, measured, _USUAL)
    assert abs(whole.error) < WITHIN, whole
    furthest = worst(found, LEAST)
    assert furthest is not None
    assert abs(furthest.error) < WITHIN, furthest


@pytest.mark.slow
@pytest.mark.parametrize("bandwidth", [1.0, 0.0])
def test_a_small_program_is_forecast_as_a_whole(case, bandwidth):
    program, inputs = case
    memory = MemorySettings(read_latency=100, bandwidth=bandwidth)
    whole, _ = compare_forecast(program, RtlBackend(RtlOptions(memory=memory)).run(program, inputs), memory)
    assert abs(whole.error) < WITHIN, whole


@pytest.mark.slow
def test_the_forecast_covers_a_slow_memory(case):
    program, inputs = case
    memory = MemorySettings(read_latency=400, bandwidth=0.5)
    measured = RtlBackend(RtlOptions(memory=memory)).run(program, inputs)
    whole, _ = compare_forecast(program, measured, memory)
    assert abs(whole.error) < 2 * WITHIN, whole
    assert measured.cycles > 1.1 * program.predicted_cycles


@pytest.mark.slow
@pytest.mark.parametrize(("kernel", "stride"), [(3, 1), (3, 2), (5, 1)])
def test_depthwise_convolutions_are_forecast_within_three_percent(kernel: int, stride: int) -> None:
    maker = GraphMaker(kernel)
    x = maker.conv(maker.input(16, 56, 56), 96, 1)
    x = maker.conv(x, 96, kernel, stride=stride, group=96)
    program = compile_graph(maker.graph(maker.conv(x, 16, 1)), preset("base"))
    measured = RtlBackend(RtlOptions(memory=_USUAL)).run(program, maker.random_inputs())
    whole, _ = compare_forecast(program, measured, _USUAL)
    assert abs(whole.error) < WITHIN, whole


@pytest.mark.slow
@pytest.mark.parametrize(("channels", "size"), [(96, 28), (288, 14)])
def test_depthwise_convolutions_from_memory_are_forecast_within_four_percent(channels: int, size: int) -> None:
    maker = GraphMaker(size)
    x = maker.input(channels, size, size)
    program = compile_graph(maker.graph(maker.conv(x, channels, 3, group=channels)), preset("base"))
    measured = RtlBackend(RtlOptions(memory=_USUAL)).run(program, maker.random_inputs())
    whole, _ = compare_forecast(program, measured, _USUAL)
    assert abs(whole.error) < 0.04, whole
