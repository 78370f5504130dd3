"""A segment restores memories, tables and exponentials: any instruction alone gives what it gives in the program."""

from itertools import pairwise

import numpy as np
import pytest

from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.isa import Kind, TableUse
from intloom.hw.spec.params import preset
from intloom.sim.isa_sim import IsaSimulator
from intloom.sim.parallel.segment import EPILOGUE, expected_memory, make_segment, prologue_length
from intloom.sim.parallel.state import states
from intloom.sim.regress.graphs import Maker, softmax
from tests.sim.parallel.networks import residual_network, vector_network


def softmax_network():
    """A Softmax in several tiles, which all use the exponentials that the first has loaded."""
    maker = Maker(1)
    graph, inputs = maker.finish(softmax(maker, maker.input(20, 60, 40)))
    return compile_graph(graph, preset("nano").replace(vector_softmax=True, scratch_kib=8, weight_kib=2)), inputs


@pytest.mark.parametrize("network", [residual_network, vector_network, softmax_network])
def test_any_instruction_alone_leaves_the_memory_of_the_program(network):
    program, inputs = network()
    uses = [i.kind is Kind.VSOFTMAX or i.values.get("table") == TableUse.KEEP for i in program.instructions]
    assert any(uses)
    # As in a plan: the instructions of prologue and epilogue take the memory of some before and some behind.
    positions = range(prologue_length(program.params), len(program.instructions) - EPILOGUE + 1)
    for before, after in pairwise(states(program, inputs, positions)):
        if program.instructions[before.position].values.get("continue_sums"):
            continue
        segment = make_segment(program, before.position, after.position, before)
        simulator = IsaSimulator(segment.program, check=False)
        simulator.reset({})
        simulator.machine.dram[:] = segment.image.view(np.int8)
        while not simulator.finished:
            simulator.step()
        made = simulator.machine.dram.view(np.uint8).reshape(-1)
        np.testing.assert_array_equal(made, expected_memory(program, segment, after))
