"""Compiled programs on the real accelerator: equal to the instruction simulator and to golden, byte for byte."""

import numpy as np
import pytest

from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.params import preset
from intloom.sim.backend import IsaBackend, RtlBackend
from intloom.sim.regress.graphs import GraphMaker
from tests.support.golden import assert_golden

NANO = preset("nano")


@pytest.mark.slow
def test_one_convolution():
    maker = GraphMaker(1)
    graph = maker.graph(maker.conv(maker.input(8, 9, 11), 12, 3))
    program = compile_graph(graph, NANO)
    inputs = maker.random_inputs()
    isa, rtl = (assert_golden(graph, program, inputs, b) for b in (IsaBackend(check=True), RtlBackend()))
    assert rtl.cycles > 0 and rtl.macs == 9 * 11 * 9 * 8 * 12
    np.testing.assert_array_equal(rtl.memory, isa.memory)
