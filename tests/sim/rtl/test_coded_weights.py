"""Weights that the compiler codes: fewer words in memory, the bytes of the golden model, in time as forecast."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from intloom.compiler.ir import Conv, IntGraph
from intloom.compiler.program.program import MemoryTiming
from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.isa import Kind
from intloom.hw.spec.params import HardwareParams, preset
from intloom.sim.regress.graphs import GraphMaker
from intloom.sim.rtl.backend import RtlBackend
from intloom.sim.rtl.job import MemorySettings
from intloom.sim.rtl.options import RtlOptions
from tests.support.golden import assert_golden

NANO = preset("nano")
CODED = NANO.replace(word_code=True, constant_check=True)


def _network(bits: int, channels: int) -> tuple[IntGraph, dict[str, np.ndarray]]:
    """Two convolutions whose weights have as many bits, on few pixels: their chunks are loaded in several pieces."""
    maker = GraphMaker(7)
    x = maker.conv(maker.input(channels, 2, 3), channels, 3)
    graph, inputs = maker.finish(maker.conv(x, channels))
    nodes = [replace(n, weights=n.weights >> (8 - bits)) if isinstance(n, Conv) else n for n in graph.nodes]
    return replace(graph, nodes=tuple(nodes)), inputs


@pytest.mark.parametrize(("bits", "params"), [(4, CODED), (8, CODED), (5, preset("base").replace(word_code=True))])
def test_words_are_coded_where_that_saves_some(bits: int, params: HardwareParams) -> None:
    graph, inputs = _network(bits, 60)
    plain, coded = (compile_graph(graph, p) for p in (params.replace(word_code=False), params))
    loads = [i["coded"] for i in coded.instructions if i.kind is Kind.LOAD]
    assert any(loads) == (bits < 8)
    assert len(coded.image) < 0.8 * len(plain.image) if bits < 8 else len(coded.image) == len(plain.image)
    assert_golden(graph, coded, inputs)


def test_a_slow_memory_bounds_a_coded_network_less() -> None:
    graph, inputs = _network(3, 60)
    cycles: dict[tuple[bool, float], int] = {}
    for params, bandwidth in itertools.product((NANO, CODED), (1.0, 0.5)):
        program = compile_graph(graph, params, memory=MemoryTiming(bandwidth=bandwidth))
        backend = RtlBackend(RtlOptions(memory=MemorySettings(bandwidth=bandwidth)))
        result = assert_golden(graph, program, inputs, backend)
        assert result.cycles is not None
        # At half bandwidth instructions, which are not forecast, take a part of it.
        assert bandwidth < 1 or abs(program.predicted_cycles / result.cycles - 1) < 0.02
        cycles[params.word_code, bandwidth] = result.cycles
    assert cycles[True, 0.5] < 0.7 * cycles[False, 0.5]
    assert cycles[True, 1.0] < 1.01 * cycles[False, 1.0]
