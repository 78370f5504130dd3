"""Sums and products with scales that give ties are exact, whatever way onnxruntime rounds them."""

import itertools

import numpy as np
import pytest

from intloom.compiler.fold.target import Target
from intloom.compiler.frontend import fold_model
from intloom.compiler.importer import from_proto
from intloom.compiler.refusals import Refusal
from tests.compiler.fold.lowering.test_matmul import moved, reshaped
from tests.support.lowered import compared
from tests.support.onnx_maker import OnnxMaker
from tests.support.parity import assert_equal

ZEROS = ((0, 0, 0), (128, 128, 128), (3, 7, 200), (0, 0, 1))
SHAPE = (1, 4, 32, 32)


def joined(m, op, scales, zeros):
    """An operator of two inputs."""
    values = [m.image(*SHAPE[1:], zero, scale).name for scale, zero in zip(scales[:2], zeros[:2], strict=True)]
    (value,) = m.node(op, values)
    m.output(m.pair(value, SHAPE, scales[2], zeros[2]))


@pytest.mark.parametrize("zeros", ZEROS)
@pytest.mark.parametrize(("one", "two"), list(itertools.combinations_with_replacement([1, 0.5, 0.25, 1.5, 3], 2)))
def test_sums_with_simple_ratios(one, two, zeros, rng, seed):
    m = OnnxMaker(rng)
    joined(m, "Add", (0.01 * one, 0.01 * two, 0.01), zeros)
    compared(m, seed)


@pytest.mark.parametrize("zeros", ZEROS)
@pytest.mark.parametrize("ratio", [0.5, 0.25, 3 / 16, 1 / 3, 0.1875 / 4])
def test_products_with_simple_ratios(ratio, zeros, rng, seed):
    m = OnnxMaker(rng)
    joined(m, "Mul", (0.05, 0.05, 0.05 * 0.05 / ratio), zeros)
    compared(m, seed)


def test_differences_with_scales_that_are_powers_of_two(rng, seed):
    m = OnnxMaker(rng)
    joined(m, "Sub", (1 / 64, 1 / 128, 1 / 32), (3, 250, 121))
    compared(m, seed)


def test_what_no_constants_follow_is_named(rng):
    """onnxruntime subtracts in float, where such scales round ties irregularly."""
    m = OnnxMaker(rng)
    joined(m, "Sub", (0.05 / 3, 0.075, 0.05), (0, 0, 0))
    assignment = next(v for v in fold_model(from_proto(m.model(), name="m")).assignments if v.op == "Sub")
    assert assignment.target is Target.HOST
    assert "next to a tie" in assignment.reason
    assert "powers of two" in assignment.remedy


def test_one_value_is_not_broadcast_over_channels(rng, seed):
    """Rows along channels minus their mean, as in an instance normalization after a convolution over time."""
    m = OnnxMaker(rng)
    x = m.conv(m.image(16, 1, 1), 16, kernel=1)
    (row,) = m.node("Reshape", [x.name, m.constant(np.array([1, 1, 16]))])
    row = m.pair(row, (1, 1, 16), x.scale, 128)
    (mean,) = m.node("GlobalAveragePool", [row.name])
    mean = m.pair(mean, (1, 1, 1), 0.05, 3)
    (difference,) = m.node("Sub", [row.name, mean.name])
    m.output(m.pair(difference, (1, 1, 16), 0.1, 100))
    found = assert_equal(m.model(), seed)
    assert next(v for v in found.folded.assignments if v.op == "Sub").row == Refusal.ORDER.number


@pytest.mark.parametrize("clamped", [False, True])
@pytest.mark.parametrize(("function", "op"), [("SiLU", "Add"), ("HardSwish", "Sub"), ("SiLU", "residual Sub")])
def test_a_residual_after_a_function_without_a_pair_between(function, op, clamped, rng, seed):
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 6, 6), 4)
    residual = m.conv(x, 4)
    if function == "SiLU":
        (gate,) = m.node("Sigmoid", [x.name])
        (value,) = m.node("Mul", [x.name, gate])
    else:
        (value,) = m.node(function, [x.name])
    names = [residual.name, value] if op == "residual Sub" else [value, residual.name]
    (value,) = m.node(op.split()[-1], names)
    if clamped:
        (value,) = m.node("Relu", [value])
    m.output(m.conv(m.pair(value, x.shape, x.scale + residual.scale, 128), 4))
    found = compared(m, seed)
    assert len(found.folded.regions) == 1
    assert all(a.target is not Target.HOST for a in found.folded.assignments)


@pytest.mark.parametrize("turned", [False, True])
def test_pixels_of_a_channel_and_channels_of_a_pixel(turned, rng, seed):
    """The same vector as a row of an image, and as the result of a Gemm: the row is turned to a pixel."""
    m = OnnxMaker(rng)
    x = m.image(1, 1, 30, 9)
    row = m.pair(*m.node("Flatten", [x.name]), (1, 30), x.scale, 9)
    weight, scales = m.weights((30, 30), 0)
    (value,) = m.node("Gemm", [row.name, weight, m.bias(scales, row.scale)], transB=1)
    made = m.pair(value, (1, 30), row.scale * 20, 100)
    (total,) = m.node("Add", [made.name, row.name] if turned else [row.name, made.name])
    m.output(m.pair(total, (1, 30), row.scale * 21, 100))
    compared(m, seed)


def test_columns_of_tokens_that_are_pixels_and_of_tokens_that_are_channels(rng, seed):
    """A box of two columns each: the product has tokens along channels, and is added to a column of pixels."""
    m = OnnxMaker(rng)
    image = reshaped(m, m.image(4, 6, 5), (1, 4, 30))
    pixels = moved(m, "Transpose", image, (1, 30, 4), perm=[0, 2, 1])
    channels = reshaped(m, m.image(30, 1, 4), (1, 30, 4))

    def column(x, index):
        (value,) = m.node("Gather", [x.name, m.constant(np.array(index))], axis=2)
        return m.pair(value, (1, 30), x.scale)

    product = m.binary("Mul", column(channels, 2), column(pixels, 1))
    m.output(m.binary("Add", column(pixels, 0), product))
    compared(m, seed)
