"""Elementwise operators with a constant for each channel, and operands of one pixel."""

import random
import time

import numpy as np
import pytest

from intloom.compiler.fold.lowering import channelwise
from intloom.compiler.ir.arithmetic import requantize
from tests.support.lowered import compared, kinds
from tests.support.onnx_maker import OnnxMaker
from tests.support.parity import Comparison, folded


def per_channel(m, channels, low, high, form):
    values = np.random.default_rng(m.rng.getrandbits(32)).uniform(low, high, channels).astype(np.float32)
    return m.constant(values.reshape(form))


@pytest.mark.parametrize("form", [(1, 8, 1, 1), (8, 1, 1)])
@pytest.mark.parametrize("op", ["Mul", "Add", "Sub", "Div"])
def test_float_constants(op, form, rng, seed):
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 6, 6), 8)
    reach = (0.5, 1.5) if op in ("Mul", "Div") else (-20 * x.scale, 20 * x.scale)
    (value,) = m.node(op, [x.name, per_channel(m, 8, *reach, form)])
    m.output(m.pair(value, x.shape, x.scale * 1.1))
    found = compared(m, seed)
    assert kinds(found) == ["Conv", "Conv"]
    assert found.folded.graph.nodes[1].group == 8


@pytest.mark.parametrize("op", ["Mul", "Add"])
def test_quantized_constants(op, rng, seed):
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 6, 6), 8)
    codes = np.random.default_rng(rng.getrandbits(32)).integers(100, 255, (1, 8, 1, 1)).astype(np.uint8)
    (constant,) = m.node(
        "DequantizeLinear", [m.constant(codes), m.constant(np.float32(0.0071)), m.constant(np.uint8(3))]
    )
    (value,) = m.node(op, [x.name, constant])
    # At 1.3 some draws give exact ties, of which onnxruntime's fp32 arithmetic rounds some up and some down.
    m.output(m.pair(value, x.shape, x.scale * 1.2718))
    assert kinds(compared(m, seed)) == ["Conv", "Conv"]


def test_a_chain_with_a_clamp(rng, seed):
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 6, 6), 8)
    slopes = np.random.default_rng(seed).uniform(-1.5, 1.5, (1, 8, 1, 1)).astype(np.float32)
    slopes[0, :3, 0, 0] = 0, 1e-9, -1e-3
    (value,) = m.node("Mul", [x.name, m.constant(slopes)])
    (value,) = m.node("Add", [value, per_channel(m, 8, -5 * x.scale, 5 * x.scale, (1, 8, 1, 1))])
    (value,) = m.node("Relu", [value])
    m.output(m.pair(value, x.shape, x.scale * 0.7, 0))
    compared(m, seed)


def test_every_one_of_many_lines_is_found(seed, monkeypatch):
    """One channel without constants assigns the whole layer to the host. Channels try a candidate at the same time.

    The constants are always the same: of 256 random channels, some draws have one with ties that fp32 rounds both ways.
    """
    m = OnnxMaker(random.Random(256))
    channels = 256
    x = m.conv(m.image(3, 2, 2), channels, 1)
    (value,) = m.node("Mul", [x.name, per_channel(m, channels, -1.5, 1.5, (1, channels, 1, 1))])
    (value,) = m.node("Add", [value, per_channel(m, channels, -5 * x.scale, 5 * x.scale, (1, channels, 1, 1))])
    m.output(m.pair(value, x.shape, x.scale * 0.7))
    tries = []
    monkeypatch.setattr(channelwise, "requantize", lambda *given: (tries.append(given), requantize(*given))[1])
    assert kinds(compared(m, seed)) == ["Conv", "Conv"]
    assert 0 < len(tries) < channels / 4


def test_batch_normalization(rng, seed):
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 6, 6), 8)
    noise = np.random.default_rng(seed)
    constants = [noise.uniform(0.5, 1.5, 8), noise.normal(0, 0.2, 8), noise.normal(0, 0.2, 8), noise.uniform(0.5, 2, 8)]
    (value,) = m.node("BatchNormalization", [x.name, *(m.constant(c.astype(np.float32)) for c in constants)])
    m.output(m.pair(value, x.shape, x.scale * 1.3))
    compared(m, seed)


def assert_every_byte_of_each_channel(m, image, zero):
    """All 256 bytes of each channel, by the golden model and onnxruntime; returns the graph's operations."""
    model, first = m.model(), -128 if m.dtype == "int8" else 0
    reals = (np.arange(first, first + 256) - zero) * np.float32(image.scale)
    feed = np.broadcast_to(reals.reshape(1, 1, 16, 16), image.shape)
    found = Comparison(model, folded(model)).compare({model.graph.input[0].name: feed.astype(np.float32)})
    assert not found.different
    compared(m, 1)
    return kinds(found)


def test_a_channel_of_a_batch_normalization_that_misses_one_byte_is_corrected(rng):
    """The second channel is of a random layer of 1,024 channels; no candidate returns all its bytes."""
    m = OnnxMaker(rng)
    x = m.image(3, 16, 16, 255, 0.0028004643972963095)
    constants = [(1.0, 3.1564393, 1.3), (0.3, 0.16863388, -0.1), (0, -0.05053674, 0.2), (1.0, 1.8502294, 0.7)]
    (value,) = m.node("BatchNormalization", [x.name, *(m.constant(np.float32(c)) for c in constants)])
    m.output(m.pair(value, x.shape, 0.0007001160993240774, 0))
    assert assert_every_byte_of_each_channel(m, x, 255) == ["Conv", "Conv", "Add"]


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_several_bytes_of_each_channel_are_corrected(dtype, monkeypatch):
    """With one weight as candidate, biases are coarse: channels miss up to four bytes, some too low, some too high."""
    monkeypatch.setattr(channelwise, "_WEIGHTS", (12,))
    m = OnnxMaker(random.Random(5), dtype=dtype)
    zero = 117 - 128 * (dtype == "int8")
    x = m.image(48, 16, 16, zero, 0.02)
    slopes = np.random.default_rng(5).uniform(-0.7, 0.7, (48, 1, 1)).astype(np.float32)
    (value,) = m.node("Mul", [x.name, m.constant(slopes)])
    (value,) = m.node("Add", [value, per_channel(m, 48, -0.2, 0.2, (48, 1, 1))])
    (value,) = m.node("Relu", [value])
    m.output(m.pair(value, x.shape, 0.01713, zero))
    found = assert_every_byte_of_each_channel(m, x, zero)
    assert found == ["Conv", *["Conv", "Add"] * 3]


def test_rows_of_a_gemm(rng, seed):
    m = OnnxMaker(rng)
    x = m.conv(m.image(8, 1, 1), 10, 1)
    (flat,) = m.node("Flatten", [x.name])
    row = m.pair(flat, (1, 10), x.scale)
    (value,) = m.node("Add", [row.name, per_channel(m, 10, -9 * x.scale, 9 * x.scale, (10,))])
    m.output(m.pair(value, (1, 10), x.scale * 1.2))
    compared(m, seed)


@pytest.mark.parametrize("size", [5, 15, 17])
@pytest.mark.parametrize("op", ["Mul", "Add"])
@pytest.mark.parametrize("first", [0, 1])
def test_an_operand_of_one_pixel_is_broadcast(op, first, size, rng, seed):
    """Squeeze and excitation: a gate for each channel; sums of scales that are powers of two are regular."""
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, size, 9), 8)
    x = m.pair(x.name, x.shape, 1 / 64)
    (mean,) = m.node("GlobalAveragePool", [x.name])
    gate = m.unary("Sigmoid", m.conv(m.pair(mean, (1, 8, 1, 1), x.scale), 8, 1), 1 / 256)
    result = m.pair(*m.node(op, [x.name, gate.name][:: 1 - 2 * first]), x.shape, x.scale)
    m.output(result)
    assert "Resize" not in kinds(compared(m, seed))


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize(
    ("low", "high", "zero", "operations"),
    [
        (0.05, 0.6, 128, ["Conv", "Conv", "Table", "Add"]),
        (-0.6, -0.05, 128, ["Conv", "Conv", "Table", "Add"]),
        (-0.6, 0.6, 128, ["Conv", "Table", "Conv", "Table", "Add"]),
        (0.05, 0.6, 255, ["Conv", "Conv"]),
    ],
)
def test_a_prelu_is_two_lines_that_meet_at_zero(dtype, low, high, zero, operations, rng, seed):
    """One convolution if all inputs are on one side of zero, and a copy that ends at zero for slopes of both signs."""
    m = OnnxMaker(rng, dtype=dtype)
    offset = 128 if dtype == "int8" else 0
    x = m.conv(m.image(3, 6, 6), 8)
    x = m.pair(x.name, x.shape, x.scale, zero - offset)
    slopes = np.random.default_rng(seed).uniform(low, high, (8, 1, 1)).astype(np.float32)
    slopes[:2, 0, 0] = 0.9731 * low, 0.9517 * high
    (value,) = m.node("PRelu", [x.name, m.constant(slopes)])
    m.output(m.pair(value, x.shape, x.scale * 1.1371, 100 - offset))
    found = kinds(compared(m, seed))
    assert [k for k in found if k != "Table"] == [k for k in operations if k != "Table"]
    assert found.count("Table") - operations.count("Table") in (0, 1)


def test_no_constants_are_tried_where_a_channel_is_far_from_every_line(seed, monkeypatch):
    """A PRelu is no line: before its two lines, 253 weights and biases were tried for the whole of it."""
    tried, candidates = [], channelwise._candidates
    monkeypatch.setattr(channelwise, "_candidates", lambda *given: tried.append(given) or candidates(*given))
    # With some zero points, all channels are near a line.
    m = OnnxMaker(random.Random(1))
    x = m.conv(m.image(3, 6, 6), 8)
    (value,) = m.node("PRelu", [x.name, m.constant(np.linspace(0.05, 0.6, 8, dtype=np.float32).reshape(8, 1, 1))])
    m.output(m.pair(value, x.shape, x.scale * 1.1371, 100))
    compared(m, seed)
    assert 0 < len(tried) < 10


def test_prelus_of_a_face_network_take_little_time(seed):
    """The widths of O-Net; a search that fails in each channel took more than 20 s."""
    m = OnnxMaker(random.Random(4))
    x = m.image(3, 4, 4)
    for channels in (32, 64, 64, 128, 256):
        x = m.conv(x, channels)
        slopes = np.random.default_rng(channels).uniform(-0.2, 0.6, (channels, 1, 1)).astype(np.float32)
        (value,) = m.node("PRelu", [x.name, m.constant(slopes)])
        x = m.pair(value, x.shape, x.scale * 0.8, 100)
    m.output(m.conv(x, 4, 1))
    started = time.process_time()
    found = folded(m.model())
    assert time.process_time() - started < 6
    assert {str(a.target) for a in found.assignments if a.op == "PRelu"} == {"vector"}
