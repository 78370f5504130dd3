"""A word of memory is named by the value that it holds, also where the tensor never leaves the scratchpad."""

import numpy as np

from intloom.compiler.program.footprint import addresses
from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.isa import Kind
from intloom.hw.spec.params import preset
from intloom.sim.compare.locate import element_in_scratchpad
from intloom.sim.golden import run_graph
from intloom.sim.isa_sim import IsaSimulator
from intloom.sim.local_tensors import LocalTensors, result_access
from tests.support.yolo_graph import yolo_graph


def test_every_local_result_is_the_value_that_its_name_says():
    graph, maker = yolo_graph(64)
    program, inputs = compile_graph(graph, preset("base").replace(scratch_kib=16)), maker.random_inputs()
    assert any(i["in_ring"] for i in program.instructions if i.kind is Kind.CONV)
    expected = run_graph(graph, inputs, match=program.params.match, keep=True)
    simulator = IsaSimulator(program, check=False)
    simulator.reset(inputs)
    results, named = LocalTensors(program).results, set()
    while not simulator.finished:
        index = simulator.step()
        if index not in results:
            continue
        words = addresses(result_access(program, results[index]))
        for word in (int(words[0]), int(words[-1])):
            element = element_in_scratchpad(program, word, 3, index)
            assert element is not None
            value = expected[element.tensor][0, element.channel, element.y, element.x]
            assert np.int8(simulator.machine.scratch[word].view(np.int8)[3]) == value
            named.add(element.tensor)
    assert len(named) >= len(program.local_tensors) / 2
