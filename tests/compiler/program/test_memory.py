"""Tensors in memory: packing and unpacking are inverse, and each byte lies where the layout says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intloom.common.errors import UsageError
from intloom.compiler.program.memory import initial_memory, pack_tensor, read_outputs, tensor_words, unpack_tensor
from intloom.compiler.program.program import Layout, Role, TensorBuffer
from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.isa import decode
from intloom.hw.spec.params import HardwareParams, preset
from intloom.hw.spec.program_check import remove_check
from intloom.sim.regress.graphs import GraphMaker


def tensor(shape: tuple[int, int, int, int], layout: Layout, params: HardwareParams) -> TensorBuffer:
    words = tensor_words(shape, layout, params)
    fields = {"scale": 1.0, "zero_point": 0, "unsigned": False}
    return TensorBuffer(name="t", role=Role.INPUT, shape=shape, layout=layout, address=0, words=words, **fields)


names = st.sampled_from(["nano", "small", "base", "large"])
sizes = st.integers(1, 9)


@given(names, st.integers(1, 40), sizes, sizes, st.integers(0, 2**32 - 1))
def test_blocked_tensors_survive_and_lie_by_block_row_and_column(name, channels, height, width, seed):
    params = preset(name)
    where = tensor((1, channels, height, width), Layout.BLOCKED, params)
    array = np.random.default_rng(seed).integers(-128, 128, where.shape, dtype=np.int8)
    data = pack_tensor(where, params, array)
    assert len(data) == where.words * params.word_bytes
    np.testing.assert_array_equal(unpack_tensor(where, params, data), array)
    c, y, x = channels - 1, height - 1, width // 2
    word = (c // params.rows * height + y) * width + x
    assert data[word * params.rows + c % params.rows] == int(array[0, c, y, x]) & 0xFF


@given(names, st.integers(1, 4), sizes, sizes, st.integers(0, 2**32 - 1))
def test_packed_pixels_survive_and_rows_start_at_words(name, channels, height, width, seed):
    params = preset(name)
    where = tensor((1, channels, height, width), Layout.PIXELS4, params)
    array = np.random.default_rng(seed).integers(-128, 128, where.shape, dtype=np.int8)
    data = pack_tensor(where, params, array)
    np.testing.assert_array_equal(unpack_tensor(where, params, data), array)
    row = -(-width // params.pixels_per_word) * params.rows
    assert data[(height - 1) * row + (width - 1) * 4] == int(array[0, 0, -1, -1]) & 0xFF
    if channels < 4:
        assert not any(data[3::4])


def test_initial_memory_holds_instructions_constants_and_inputs():
    maker = GraphMaker(1)
    program = compile_graph(maker.graph(maker.conv(maker.input(16, 5, 5), 16, 3)), preset("base"))
    memory = initial_memory(program, maker.random_inputs()).tobytes()
    code = memory[program.instructions_at * 16 :][: 64 * len(program.instructions)]
    assert tuple(map(decode, remove_check(code))) == program.instructions
    assert memory[program.image_at * 16 :].startswith(program.image)


def test_wrong_inputs_are_refused_by_name():
    maker = GraphMaker(2)
    program = compile_graph(maker.graph(maker.conv(maker.input(16, 5, 5), 16, 3)), preset("base"))
    good = maker.random_inputs()
    for inputs, message in [
        ({}, "'in0'.*missing"),
        ({**good, "more": good["in0"]}, "no input 'more'"),
        ({"in0": good["in0"][:, :8]}, "must have shape"),
        ({"in0": good["in0"].astype(np.int16)}, "must be int8"),
    ]:
        with pytest.raises(UsageError, match=message):
            initial_memory(program, inputs)


def test_read_outputs_reads_outputs_only():
    maker = GraphMaker(3)
    x = maker.input(16, 4, 4)
    program = compile_graph(maker.graph(maker.conv(x, 16)), preset("base"))
    outputs = read_outputs(program, initial_memory(program, maker.random_inputs()))
    assert {n: a.shape for n, a in outputs.items()} == {"t0": (1, 16, 4, 4)}
