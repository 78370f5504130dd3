"""A segment as a program of its own restores the whole state, computes the same, and stores the scratchpad."""

import random

import numpy as np
import pytest

from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.isa import Kind
from intloom.sim.isa_sim import IsaSimulator
from intloom.sim.parallel.segment import EPILOGUE, expected_memory, make_segment, prologue_length, vector_tables
from intloom.sim.parallel.state import states
from intloom.sim.regress.graphs import GraphMaker
from tests.support.shapes import SHAPES

KEPT = ("scratch", "weights", "mac_table", "vector_table", "exponentials")


@pytest.mark.parametrize("shape", SHAPES)
def test_a_segment_begins_with_any_state_and_ends_with_that_of_the_program(shape: str, rng: random.Random) -> None:
    maker = GraphMaker(rng.getrandbits(32))
    x = maker.conv(maker.input(6, 9, 8), 12, 3)
    graph = maker.graph(maker.conv(maker.apply_table(maker.max_pool(x, 2, 2)), 8, 3))
    program, inputs = compile_graph(graph, SHAPES[shape].replace(mantissa_bits=24, acc_bits=32)), maker.random_inputs()
    count, numbers = len(program.instructions), np.random.default_rng(rng.getrandbits(32))
    before = prologue_length(program.params)
    convs = [i for i, one in enumerate(program.instructions) if one.kind is Kind.CONV and i >= before]
    first, last = rng.choice(convs), rng.randrange(convs[-1] + 1, count - EPILOGUE + 1)
    state = next(machine for _, machine in states(program, inputs, {first}))

    segment = make_segment(program, first, last, state)
    simulator = IsaSimulator(segment.program, check=False)
    simulator.reset({})
    simulator.machine.dram[:] = segment.image.view(np.int8)
    while not simulator.finished:
        simulator.step()
    after = next(machine for _, machine in states(program, inputs, {last}))
    np.testing.assert_array_equal(
        simulator.machine.dram.view(np.uint8).reshape(-1), expected_memory(program, segment, after)
    )
    assert len(segment.program.instructions) == before + last - first + EPILOGUE

    # What a program leaves in its tables is of few kinds; a segment restores any.
    for name in KEPT:
        values = getattr(state, name)
        values[:] = numbers.integers(0, 256, values.shape).astype(np.uint8).view(values.dtype)
    segment = make_segment(program, first, last, state)
    simulator.reset({})
    simulator.machine.dram[:] = segment.image.view(np.int8)
    for _ in range(before):
        simulator.step()
    state.exponentials[vector_tables(program.params) - 1 :] = 0
    for name in KEPT:
        np.testing.assert_array_equal(getattr(simulator.machine, name), getattr(state, name), err_msg=name)
