"""A memory port that is narrower or wider than a word: bytes, traffic and forecast of a network."""

from dataclasses import replace

import numpy as np
import pytest

from intloom.compiler.program.program import MemoryTiming
from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.params import HardwareParams, changed, preset
from intloom.sim.backend import RtlBackend
from intloom.sim.forecast_error import compare_forecast
from intloom.sim.golden import run_graph
from intloom.sim.regress.graphs import GraphMaker
from intloom.sim.rtl.job import MemorySettings
from intloom.sim.rtl.options import RtlOptions

pytestmark = pytest.mark.slow
NARROW = changed(preset("small"), {"axi_data_bits": 32, "axi_burst": 16})
WIDE = changed(preset("nano"), {"axi_data_bits": 128})


# Random programs and disturbed ones run on a wide port every day (`bytes`).
@pytest.mark.parametrize(
    "params", [pytest.param(NARROW, id="narrow"), pytest.param(WIDE, id="wide", marks=pytest.mark.nightly)]
)
def test_a_network_runs_on_a_port_of_another_width(params: HardwareParams) -> None:
    maker = GraphMaker(1)
    x = maker.add(y := maker.conv(maker.input(3, 16, 16), 16, 3, stride=2), maker.conv(y, 16, 1))
    graph, inputs = maker.graph(maker.conv(x, 24, 3)), maker.random_inputs()
    memory = MemorySettings(stall_permille=100)
    program = compile_graph(graph, params, keep_intermediates=True)
    result = RtlBackend(RtlOptions(memory=memory), keep_tensors=True).run(program, inputs)
    golden = run_graph(graph, inputs, match=params.match, keep=True)
    assert set(result.tensors) >= set(result.outputs)
    for name, value in (result.outputs | result.tensors).items():
        np.testing.assert_array_equal(value, golden[name], err_msg=name)
    words = sum(layer.dram_words for layer in program.layers)
    # Instructions are fetched, too.
    fetched = result.dram_bytes - words * params.word_bytes
    assert 0 < fetched < 2 * len(program.instructions) * 64


@pytest.mark.parametrize("bandwidth", [1.0, 0.5, 0.0])
def test_a_narrow_port_is_forecast(bandwidth: float) -> None:
    maker = GraphMaker(1)
    x = maker.conv(maker.input(3, 64, 64), 16, 3, stride=2)
    x = maker.add(maker.conv(x, 16, 3), x)
    graph = maker.graph(maker.conv(maker.max_pool(x, 5, pad=2), 96, 1))
    memory = MemorySettings(bandwidth=bandwidth)
    program = compile_graph(graph, NARROW, effort=0, memory=MemoryTiming(bandwidth=bandwidth))
    result = RtlBackend(RtlOptions(memory=memory)).run(program, maker.random_inputs())
    whole, _ = compare_forecast(program, result, memory)
    assert abs(whole.error) < 0.03, whole
    # Half the port's width costs this network time: a forecast without it is wrong.
    as_wide = replace(program, params=changed(NARROW, {"axi_data_bits": 64, "axi_burst": 8}))
    assert compare_forecast(as_wide, result, memory)[0].error < -0.02
