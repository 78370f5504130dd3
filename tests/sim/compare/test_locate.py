"""A word of memory is named by the value that it holds, also where the tensor never leaves the scratchpad."""

from dataclasses import replace

import numpy as np

from intloom.compiler.program.footprint import Memory, addresses, footprint
from intloom.compiler.program.memory import unpack_tensor
from intloom.compiler.program.program import Layout, Role
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


def test_of_tensors_that_share_words_the_one_is_named_whose_last_store_comes_next():
    maker = GraphMaker(3)
    program = compile_graph(maker.graph(maker.conv(maker.input(8, 4, 4), 8, 1)), preset("nano"))
    (one,) = (t for t in program.tensors if t.role is Role.OUTPUT)
    sharing = [replace(one, name=str(store), first_instruction=store) for store in (9, 5, 7)]
    expected = [(0, "5"), (5, "5"), (6, "7"), (7, "7"), (8, "9"), (9, "9")]
    program = replace(program, tensors=tuple(sharing))
    names = [(index, element_in_dram(program, one.address, 0, index).tensor) for index, _ in expected]
    assert names == expected


def test_a_word_is_named_by_the_value_that_a_store_takes_from_it():
    """Each tensor is stored: nothing is without a name but what is loaded, and lines of a maximum."""
    graph, maker = yolo_graph(64)
    params = preset("nano")
    program, inputs = compile_graph(graph, params, keep_intermediates=True), maker.random_inputs()
    expected = run_graph(graph, inputs, match=params.match, keep=True)
    simulator = IsaSimulator(program, check=False)
    simulator.reset(inputs)
    rng, named = np.random.default_rng(1), set()
    while not simulator.finished:
        index = simulator.step()
        for access in footprint(program.instructions[index], params):
            if not access.write or access.memory is Memory.WEIGHT or rng.random() < 0.8:
                continue
            byte = int(rng.integers(params.word_bytes))
            memory, locate = {
                Memory.SCRATCH: (simulator.machine.scratch, element_in_scratchpad),
                Memory.DRAM: (simulator.machine.dram, element_in_dram),
            }[access.memory]
            for word in rng.choice(addresses(access), 2):
                element = locate(program, int(word), byte, index)
                assert element or program.instructions[index].kind in (Kind.LOAD, Kind.VMAX), (index, word, byte)
                if element is not None and element.channel < expected[element.tensor].shape[1]:
                    value = expected[element.tensor][0, element.channel, element.y, element.x]
                    assert np.int8(memory[word].view(np.int8)[byte]) == value, (index, word, byte)
                    named.add(element.tensor)
    assert len(named) > 40
