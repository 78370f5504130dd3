"""The integer average is onnxruntime's integer kernel, and next to its float kernels as far as it states."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from intloom.compiler.fold.arithmetic.integer_average import average_scale, averages, float_distance
from intloom.compiler.ir import Tensor
from intloom.compiler.reference import open_session
from intloom.compiler.refusals import UnsupportedPattern
from intloom.hw.spec.arith import RoundingMode, requantize


def tensors(rng, ratio):
    """Input and result whose scales have about this ratio, with random zero points."""
    x_scale = np.float32(rng.uniform(0.001, 0.1))
    zeros = [rng.choice((-128, 127, 0, rng.randint(-128, 127))) for _ in range(2)]
    x = Tensor("x", (1, 1, 1, 1), float(x_scale), zeros[0], True)
    return x, Tensor("y", (1, 1, 1, 1), float(np.float32(x_scale / ratio)), zeros[1], True)


def kernel(x, y, bytes_of_windows, op):
    """Results of onnxruntime's QLinear operator for windows of int8 values, one in each channel."""
    count, size = bytes_of_windows.shape
    shape = (1, count, 1, size)
    names = ["x", "xs", "xz", "ys", "yz"]
    values = (np.float32(x.scale), np.uint8(x.zero_point + 128), np.float32(y.scale), np.uint8(y.zero_point + 128))
    stored = [numpy_helper.from_array(np.asarray(v), n) for n, v in zip(names[1:], values, strict=True)]
    shapes = {} if op == "QLinearGlobalAveragePool" else {"kernel_shape": [1, size]}
    graph = helper.make_graph(
        [helper.make_node(op, names, ["y"], domain="com.microsoft", **shapes)],
        "kernel",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, shape)],
        [helper.make_tensor_value_info("y", TensorProto.UINT8, (1, count, 1, 1))],
        stored,
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model: onnx.ModelProto = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    given = (bytes_of_windows.astype(np.int16) + 128).astype(np.uint8).reshape(shape)
    (made,) = open_session(model.SerializeToString(), threads=1).run(None, {"x": given})
    return made.ravel().astype(np.int64) - 128


def windows(sums, size, noise):
    """Bytes with these sums in random order."""
    low, rest = np.divmod(sums, size)
    found = (low[:, None] + (np.arange(size) < rest[:, None])).astype(np.int64)
    # A sum stays the same when one byte of a pair grows as the other one shrinks.
    for _ in range(2):
        first = noise.permuted(np.tile(np.arange(size), (len(sums), 1)), axis=1)[:, : size // 2 * 2]
        one, two = first[:, ::2], first[:, 1::2]
        rows = np.arange(len(sums))[:, None]
        room = np.minimum(127 - found[rows, one], found[rows, two] + 128)
        step = (noise.random(room.shape) * (room + 1)).astype(np.int64)
        found[rows, one] += step
        found[rows, two] -= step
    return found


@pytest.mark.parametrize("size", [1, 2, 9, 49])
@pytest.mark.parametrize("ratio", [1, 0.5, 3, None])
def test_equals_the_integer_kernel_at_every_sum(size, ratio, rng, seed):
    x, y = tensors(rng, ratio or rng.uniform(0.1, 8))
    sums = np.arange(-128 * size, 127 * size + 1)
    theirs = kernel(x, y, windows(sums, size, np.random.default_rng(seed)), "QLinearGlobalAveragePool")
    np.testing.assert_array_equal(averages(sums - size * x.zero_point, x, y, size, RoundingMode.ORT), theirs)


@pytest.mark.parametrize("match", list(RoundingMode))
@pytest.mark.parametrize("ratio", [1, 0.75, None])
def test_is_the_requantization_of_the_sum(match, ratio, rng):
    size = rng.choice((4, 9, 12, 1024))
    x, y = tensors(rng, ratio or rng.uniform(0.1, 8))
    sums = np.array([*(rng.randint(-128 * size, 127 * size) for _ in range(500)), -128 * size, 127 * size])
    scale = average_scale(x, y, size)
    expected = [requantize(int(s) - size * x.zero_point, scale, y.zero_point, match) for s in sums]
    np.testing.assert_array_equal(averages(sums - size * x.zero_point, x, y, size, match), expected)


@pytest.mark.parametrize("size", [1, 3, 4, 9, 64])
@pytest.mark.parametrize("ratio", [1, 0.5, 2.7, 40, None])
def test_distance_from_the_float_kernel(size, ratio, rng, seed):
    """Every sum, as windows with large values of both signs, whose float sums have the largest errors."""
    x, y = tensors(rng, ratio or rng.uniform(0.1, 8))
    sums = np.arange(-128 * size, 127 * size + 1)
    theirs = kernel(x, y, windows(sums, size, np.random.default_rng(seed)), "QLinearAveragePool")
    gap = np.abs(averages(sums - size * x.zero_point, x, y, size, RoundingMode.ORT) - theirs)
    assert gap.max() <= float_distance(x, y, size)


def test_distance_of_known_scales():
    x = Tensor("x", (1, 1, 1, 1), 0.25, 0, True)
    assert float_distance(x, Tensor("y", (1, 1, 1, 1), 0.25, 0, True), 4) == 1  # ties
    assert float_distance(x, Tensor("y", (1, 1, 1, 1), 0.25, 0, True), 3) == 0  # thirds are no ties
    assert float_distance(x, Tensor("y", (1, 1, 1, 1), 0.25e-4, 0, True), 3000) > 1  # errors of more than a step


def test_a_factor_that_no_requantizer_expresses():
    x = Tensor("x", (1, 1, 1, 1), 1e30, 0, True)
    with pytest.raises(UnsupportedPattern):
        average_scale(x, Tensor("y", (1, 1, 1, 1), 1e-20, 0, True), 4)
