"""Weights of 9 bits in Conv, ConvTranspose and Gemm, also 255 above their zero point."""

import numpy as np
import pytest

from tests.support.lowered import compared
from tests.support.onnx_maker import OnnxMaker


def stored_weights(m, values, zeros, scale=0.004, axis=0):
    channels = values.shape[axis]
    names = [m.constant(values), m.constant(np.full(channels, scale, np.float32)), m.constant(zeros)]
    return m.node("DequantizeLinear", names, axis=axis)[0]


@pytest.mark.parametrize("zero", [0, 1, 127, 128, 129, 254, 255])
@pytest.mark.parametrize("activation", [None, "Relu"])
def test_extreme_weights(zero, activation, rng, seed):
    """With zero point 0 some lie 255 above it, with 255 some 255 below."""
    m = OnnxMaker(rng)
    x = m.image(4, 7, 7, 99)
    values = np.random.default_rng(seed).integers(0, 256, (8, 4, 3, 3)).astype(np.uint8)
    values[0, 0, 0, :2] = 0, 255
    weight = stored_weights(m, values, np.full(8, zero, np.uint8))
    (value,) = m.node("Conv", [x.name, weight], kernel_shape=[3, 3])
    if activation:
        (value,) = m.node(activation, [value])
    m.output(m.pair(value, (1, 8, 5, 5), 0.03, 100))
    found = compared(m, seed)
    assert found.folded.graph.nodes[0].weights.dtype == (np.int8 if zero == 128 else np.int16)


def test_a_matrix_of_extreme_weights(rng, seed):
    m = OnnxMaker(rng)
    x = m.conv(m.image(8, 1, 1), 16, 1)
    (flat,) = m.node("Flatten", [x.name])
    row = m.pair(flat, (1, 16), x.scale)
    values = np.random.default_rng(seed).integers(200, 256, (16, 10)).astype(np.uint8)
    values[0, 0] = 255
    (value,) = m.node("Gemm", [row.name, stored_weights(m, values, np.zeros(10, np.uint8), axis=1)])
    m.output(m.pair(value, (1, 10), x.scale * 8, 128))
    compared(m, seed)


def test_every_channel_has_its_own_zero_point(rng, seed):
    """One channel is 255 above its zero point, one 255 below."""
    m = OnnxMaker(rng)
    x = m.image(4, 7, 7)
    values = np.random.default_rng(seed).integers(0, 256, (8, 4, 1, 1)).astype(np.uint8)
    values[0], values[1] = 255, 0
    weight = stored_weights(m, values, np.array([0, 255, 1, 127, 128, 129, 254, 77], np.uint8))
    (value,) = m.node("Conv", [x.name, weight], kernel_shape=[1, 1])
    m.output(m.pair(value, (1, 8, 7, 7), 0.03))
    (node,) = compared(m, seed).folded.graph.nodes
    assert node.weights[0].max() == 255
    assert node.weights[1].min() == -255
