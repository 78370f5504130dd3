"""Tensors in memory: packing and unpacking are inverse, and each byte lies where the layout says."""

import dataclasses
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intloom.common.errors import UnsupportedError, UsageError
from intloom.compiler.limits import MOST_CHANNELS
from intloom.compiler.program.device_image import device_image, plan_image
from intloom.compiler.program.memory import (
    encode_all,
    initial_memory,
    pack_tensor,
    read_outputs,
    tensor_words,
    unpack_tensor,
)
from intloom.compiler.program.program import Layout, MemoryTiming, Program, Role, TensorBuffer
from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.image_format import ALIGNMENT, CHECKED_FROM, HEADER, NO_TENSOR, REGION, REGION_ALIGNMENT, TENSOR
from intloom.hw.spec.isa import decode
from intloom.hw.spec.params import PRESETS, HardwareParams, preset
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


@pytest.mark.parametrize("layout", list(Layout))
def test_bytes_of_a_tensor_are_as_many_as_its_words(layout):
    params = preset("base")
    where = tensor((1, 3, 2, 5), layout, params)
    for more in (-16, -1, 1, 16):
        with pytest.raises(UsageError, match=f"must have {where.words * 16} bytes, not {where.words * 16 + more}"):
            unpack_tensor(where, params, bytes(where.words * 16 + more))


@pytest.mark.parametrize("name", ["read_latency", "write_latency"])
def test_latencies_of_a_memory_have_limits(name):
    for cycles in (0, 1_000_000):
        assert getattr(MemoryTiming(**{name: cycles}), name) == cycles
    for cycles in (-1, 1_000_001):
        with pytest.raises(UsageError, match=f"memory {name} must be from 0 to 1,000,000 cycles"):
            MemoryTiming(**{name: cycles})


def test_the_bandwidth_of_a_memory_has_limits():
    used = {0.0: 2.0, 1e-24: 1e-24, 0.5: 0.5, 1.999: 1.999, 2.0: 2.0, 3.0: 2.0, 1e6: 2.0}
    assert {b: MemoryTiming(bandwidth=b).beats_per_cycle for b in used} == used
    for bandwidth in (-1e-30, -1.0, 0.9e-24, 1.0001e6, float("nan"), float("inf")):
        with pytest.raises(UsageError, match="memory bandwidth must be 0, or from"):
            MemoryTiming(bandwidth=bandwidth)


def regions(*words: int) -> list[Program]:
    """Programs of regions whose memory has these words; each reads the output of the one before."""
    maker = GraphMaker(4)
    program = compile_graph(maker.graph(maker.conv(maker.input(16, 5, 5), 16, 3)), preset("base"))
    chain = []
    for number, size in enumerate(words):
        names = {"in0": f"t{number - 1}" if number else "in0", "t0": f"t{number}"}
        tensors = tuple(dataclasses.replace(t, name=names[t.name]) for t in program.tensors)
        sizes = {"memory_words": max(size, program.memory_words), "region": number, "regions": len(words)}
        chain.append(dataclasses.replace(program, tensors=tensors, **sizes))
    return chain


def test_regions_follow_each_other_in_the_window_from_multiples_of_their_alignment():
    programs = regions(0, 1001, 1 << 16)
    plan = plan_image(programs)
    end = 0
    for start, program in zip(plan.region_starts, programs, strict=True):
        assert start % REGION_ALIGNMENT == 0
        assert 0 <= start - end < REGION_ALIGNMENT
        end = start + 16 * program.memory_words
    assert plan.window_bytes == end
    found = [(t.region, t.role.name, t.buffer.name, t.source) for t in plan.tensors]
    expected = [(0, "INPUT", "in0", None), (0, "OUTPUT", "t0", None), (1, "INPUT", "t0", 1), (1, "OUTPUT", "t1", None)]
    assert found == [*expected, (2, "INPUT", "t1", 3), (2, "OUTPUT", "t2", None)]
    for t in plan.tensors:
        assert t.window_at == plan.region_starts[t.region] + 16 * t.buffer.address
        assert t.bytes == 16 * t.buffer.words


def test_a_window_is_smaller_than_4_gib():
    (small,) = regions(0)
    largest = (1 << 32) // 16 - 1
    assert plan_image([dataclasses.replace(small, memory_words=largest)]).window_bytes == (1 << 32) - 16
    with pytest.raises(UnsupportedError, match="less than 4 GiB of memory, not 4294967296 bytes"):
        plan_image([dataclasses.replace(small, memory_words=largest + 1)])


def test_a_device_image_says_where_its_parts_are():
    programs = regions(0, 0)
    for cycles, said in ((5, 5), ((1 << 32) - 1, (1 << 32) - 1), (1 << 32, (1 << 32) - 1)):
        image = device_image([dataclasses.replace(p, predicted_cycles=cycles) for p in programs])
        header = dict(
            zip((m.name for m in HEADER.members), struct.unpack_from(f"<{HEADER.size // 4}I", image), strict=True)
        )
        assert (header["length"], header["crc"]) == (len(image), zlib.crc32(image[CHECKED_FROM:]))
        assert (header["regions"], header["tensors"]) == (2, 4)
        names = image[header["names_at"] :][: header["names_bytes"]]
        assert names == b"in0\0t0\0t0\0t1\0"
        starts = []
        for k, program in enumerate(programs):
            at = header["regions_at"] + k * REGION.size
            one = dict(
                zip(
                    (m.name for m in REGION.members),
                    struct.unpack_from(f"<{REGION.size // 4}I", image, at),
                    strict=True,
                )
            )
            assert image[one["code_at"] :][: one["code_bytes"]] == encode_all(program)
            assert image[one["data_at"] :][: one["data_bytes"]] == program.image
            assert one["instructions"] == len(program.instructions)
            assert (one["code_to"], one["data_to"]) == (16 * program.instructions_at, 16 * program.image_at)
            assert (one["first_tensor"], one["tensors"], one["cycles"]) == (2 * k, 2, said)
            assert one["window_bytes"] == 16 * program.memory_words
            starts += [one["code_at"], one["data_at"]]
        assert not any(
            at % ALIGNMENT for at in (*starts, *(header[f"{n}_at"] for n in ("regions", "tensors", "names")))
        )
        for k, (role, source) in enumerate([(0, NO_TENSOR), (1, NO_TENSOR), (0, 1), (1, NO_TENSOR)]):
            at = header["tensors_at"] + k * TENSOR.size
            one = dict(
                zip(
                    (m.name for m in TENSOR.members),
                    struct.unpack_from(f"<{TENSOR.size // 4}I", image, at),
                    strict=True,
                )
            )
            assert (one["role"], one["source"], one["name_at"]) == (role, source, (0, 4, 7, 10)[k])
            assert (one["channels"], one["height"], one["width"]) == (16, 5, 5)


def test_the_most_channels_are_those_whose_weights_fit_every_preset():
    fits = []
    for channels in (MOST_CHANNELS, MOST_CHANNELS + 1):
        for p in PRESETS.values():
            blocks = -(-channels // p.rows)
            words = blocks * p.tile_words + p.table_words + p.channel_words + p.zero_point_words
            fits.append(words <= p.weight_words)
    assert all(fits[: len(PRESETS)])
    assert not all(fits[len(PRESETS) :])
