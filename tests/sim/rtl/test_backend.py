"""Compiled programs on the real accelerator: equal to the instruction simulator and to golden, byte for byte."""

import numpy as np
import pytest

from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.params import preset
from intloom.sim.backend import GoldenBackend, IsaBackend, RtlBackend
from intloom.sim.compare import compare
from intloom.sim.regress.graphs import GraphMaker

NANO = preset("nano")


@pytest.mark.slow
def test_one_convolution():
    maker = GraphMaker(1)
    graph = maker.graph(maker.conv(maker.input(8, 9, 11), 12, 3))
    program = compile_graph(graph, NANO)
    inputs = maker.random_inputs()
    golden = GoldenBackend(graph).run(program, inputs)
    isa = IsaBackend(check=True).run(program, inputs)
    rtl = RtlBackend().run(program, inputs)
    compare(golden.outputs, isa.outputs).require_equal()
    compare(golden.outputs, rtl.outputs).require_equal()
    assert rtl.cycles > 0 and rtl.macs == 9 * 11 * 9 * 8 * 12
    np.testing.assert_array_equal(rtl.memory, isa.memory)
