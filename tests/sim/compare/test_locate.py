"""A word of memory is named by the value that it holds, also where the tensor never leaves the scratchpad."""

import numpy as np

from intloom.compiler.program.footprint import Memory, addresses, footprint
from intloom.compiler.program.memory import unpack_tensor
from intloom.compiler.program.program import Layout
from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.isa import Kind
from intloom.hw.spec.params import preset
from intloom.sim.compare.locate import element_in_dram, element_in_scratchpad
from intloom.sim.golden import run_graph
from intloom.sim.isa_sim import IsaSimulator
from intloom.sim.local_tensors import LocalTensors, result_access
from intloom.sim.regress.graphs import GraphMaker
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


def _positions(tensor, params):
    """The byte of a tensor's words in which each of its values is."""
    numbers = np.arange(tensor.words * params.word_bytes, dtype="<u4")
    digits = numbers.view(np.uint8).reshape(-1, 4).T
    whole = [unpack_tensor(tensor, params, digit.tobytes()).view(np.uint8).astype(int) for digit in digits]
    return sum(digit << 8 * k for k, digit in enumerate(whole))


def test_each_byte_of_memory_is_named_by_the_value_that_is_unpacked_from_it():
    maker = GraphMaker(3)
    x = maker.conv(maker.input(3, 9, 11), 20, 3)
    graph = maker.graph(maker.conv(maker.add(maker.conv(x, 20, 1), x), 40, 3, stride=2))
    params = preset("base")
    program = compile_graph(graph, params, keep_intermediates=True)
    layouts = set()
    for tensor in program.tensors:
        layouts.add(tensor.layout)
        for coordinate, at in np.ndenumerate(_positions(tensor, params)):
            word, byte = divmod(int(at), params.word_bytes)
            # Before and during its last store; afterwards the words may be those of another tensor.
            element = element_in_dram(program, tensor.address + word, byte, tensor.first_instruction or 0)
            assert (element.tensor, 0, element.channel, element.y, element.x) == (tensor.name, *coordinate)
    assert layouts == {*Layout}
    assert element_in_dram(program, program.memory_words, 0, 0) is None


def test_a_word_of_the_scratchpad_is_named_by_the_value_that_a_store_takes_from_it():
    graph, maker = yolo_graph(64)
    program, inputs = compile_graph(graph, preset("nano"), keep_intermediates=True), maker.random_inputs()
    expected = run_graph(graph, inputs, match=program.params.match, keep=True)
    simulator = IsaSimulator(program, check=False)
    simulator.reset(inputs)
    rng, named, unnamed = np.random.default_rng(1), set(), 0
    while not simulator.finished:
        index = simulator.step()
        writes = [a for a in footprint(program.instructions[index], program.params) if a.write]
        words = [w for a in writes if a.memory is Memory.SCRATCH for w in addresses(a)]
        for word in rng.choice(words, min(len(words), 2), replace=False) if rng.random() < 0.2 else []:
            byte = int(rng.integers(program.params.word_bytes))
            element = element_in_scratchpad(program, int(word), byte, index)
            if element is None or element.channel >= expected[element.tensor].shape[1]:
                unnamed += 1
                continue
            value = expected[element.tensor][0, element.channel, element.y, element.x]
            assert np.int8(simulator.machine.scratch[word].view(np.int8)[byte]) == value, (index, word, byte)
            named.add(element.tensor)
    assert len(named) > 20 and unnamed
