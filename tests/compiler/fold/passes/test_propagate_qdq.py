"""Pairs that move to before Concat, Split and Resize of computed values change no byte."""

import numpy as np
import pytest

from tests.support.lowered import compared, kinds
from tests.support.onnx_maker import OnnxMaker, Value


def relu(m, x, channels):
    """A convolution with Relu whose result is float."""
    weight, scales = m.weights((channels, x.shape[1], 3, 3), 0)
    (value,) = m.node("Conv", [x.name, weight, m.bias(scales, x.scale)], pads=[1] * 4, kernel_shape=[3, 3])
    return m.node("Relu", [value])[0]


def test_operands_of_a_concat_need_no_pairs(rng, seed):
    """As TensorRT's tools write them: a pair before each convolution only."""
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 8, 8), 6)
    one, two = relu(m, x, 4), relu(m, x, 5)
    (large,) = m.node("Concat", [one, two, x.name], axis=1)
    joined = m.pair(large, (1, 15, 8, 8), 3 * x.scale)
    m.output(m.conv(joined, 4))
    assert kinds(compared(m, seed)).count("Conv") == 4


def test_outputs_of_a_split_have_scales_of_their_own(rng, seed):
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 8, 8), 6)
    parts = m.node("Split", [relu(m, x, 8), m.constant(np.array([3, 5]))], ["part0", "part1"], axis=1)
    one, two = (m.pair(p, (1, c, 8, 8), s * x.scale) for p, c, s in zip(parts, (3, 5), (2, 5), strict=True))
    m.output(m.conv(one, 4), m.conv(two, 4))
    compared(m, seed)


@pytest.mark.parametrize("scales", [(2.0, 2.0), (2.0, 5.0)])
def test_a_value_is_enlarged_and_used_as_it_is(scales, rng, seed):
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 8, 8), 6)
    value = relu(m, x, 4)
    attributes = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    (up,) = m.node("Resize", [value, "", m.constant(np.array([1, 1, 2, 2], np.float32))], **attributes)
    large, small = m.pair(up, (1, 4, 16, 16), scales[0] * x.scale), m.pair(value, (1, 4, 8, 8), scales[1] * x.scale)
    m.output(m.conv(large, 4), m.conv(small, 4))
    compared(m, seed)


def test_a_value_is_pooled_and_enlarged_and_used_as_it_is(rng, seed):
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 8, 8), 6)
    value = relu(m, x, 4)
    (pooled,) = m.node("MaxPool", [value], kernel_shape=[2, 2], strides=[2, 2])
    attributes = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    (up,) = m.node("Resize", [pooled, "", m.constant(np.array([1, 1, 2, 2], np.float32))], **attributes)
    m.output(m.conv(m.pair(up, (1, 4, 8, 8), 2 * x.scale), 4), m.conv(m.pair(value, (1, 4, 8, 8), 5 * x.scale), 4))
    compared(m, seed)


def test_a_relu_of_a_quantized_value_needs_no_pair(rng, seed):
    """As of onnxruntime's `op_types_to_quantize` without Relu: averages and convolutions read its result."""
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 8, 8), 6)
    (value,) = m.node("Relu", [x.name])
    (mean,) = m.node("GlobalAveragePool", [value])
    m.output(m.conv(Value(value, x.shape, x.scale), 4), m.conv(m.pair(mean, (1, 6, 1, 1), x.scale), 4, kernel=1))
    assert kinds(compared(m, seed)).count("Conv") == 3
