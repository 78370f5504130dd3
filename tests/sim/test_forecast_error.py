"""The compiler's forecast against the RTL's own cycles, chain by chain."""

import pytest

from intloom.compiler.program.forecast import forecast_of
from intloom.compiler.program.layers import chains
from intloom.compiler.schedule import compile_graph
from intloom.flow.networks import load_network
from intloom.hw.spec.params import preset
from intloom.sim.backend import RtlBackend
from intloom.sim.forecast_error import ForecastComparison, compare_forecast, worst
from intloom.sim.regress.graphs import GraphMaker
from intloom.sim.result import LayerResult, RunResult
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


def test_each_chain_is_compared_with_the_cycles_of_its_layers(case):
    """Measured here is twice the forecast of each layer, and one more; the last layer was not reached."""
    program, _ = case
    expected = forecast_of(program, _USUAL).layers
    layers = tuple(
        LayerResult(
            name=layer.name, op="", macs=0, vector_macs=0, cycles=2 * cycles + 1, mac_use=0.0, stalls={}, busy={}
        )
        for layer, cycles in zip(program.layers[:-1], expected, strict=False)
    )
    result = RunResult(backend="rtl", outputs={}, wall_s=1.0, cycles=777, layers=layers)
    whole, found = compare_forecast(program, result, _USUAL)
    assert (whole.name, whole.measured, whole.expected) == (program.name, 777, forecast_of(program, _USUAL).cycles)
    reached = [c.layers for c in chains(program) if len(program.layers) - 1 not in c.layers]
    assert len(reached) > 2 and len(found) == len(reached)
    for chain, error in zip(reached, found, strict=True):
        assert error.expected == sum(expected[k] for k in chain)
        assert error.measured == 2 * error.expected + len(chain)
        assert error.name.split(" to ") == list(dict.fromkeys(program.layers[k].name for k in (chain[0], chain[-1])))


def test_the_worst_chain_is_the_furthest_off_of_those_that_are_long_enough():
    some = tuple(
        ForecastComparison(f"{expected}/{measured}", expected, measured)
        for expected, measured in ((10, 99), (90, 100), (130, 100), (260, 200), (140, 200))
    )
    assert [round(c.error, 3) for c in some] == [-0.899, -0.1, 0.3, 0.3, -0.3]
    assert worst(some, 100) == some[2] and worst(some, 200) == some[3]
    assert worst(some, 99) == some[0] and worst(some, 201) is None
    assert ForecastComparison("", 5, 0).error == 0.0


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
