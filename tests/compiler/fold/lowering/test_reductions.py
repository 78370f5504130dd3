"""Maxima over pixels, channels and the last axis, averages over channels, and single rows that only the host reads."""

import numpy as np
import pytest

from intloom.compiler.fold.target import Target
from tests.support.lowered import compared, kinds
from tests.support.onnx_maker import OnnxMaker, Value


def largest(m: OnnxMaker, x: Value, axes: list[int], keepdims: int, rescaled: bool = False) -> Value:
    shape = [1 if a in axes else n for a, n in enumerate(x.shape)]
    if not keepdims:
        shape = [n for a, n in enumerate(x.shape) if a not in axes]
    (value,) = m.node("ReduceMax", [x.name], axes=axes, keepdims=keepdims)
    return m.pair(value, tuple(shape), x.scale * (0.7 if rescaled else 1))


def target(found, op: str) -> Target:
    return next(a.target for a in found.folded.assignments if a.op == op)


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("axes", [[2, 3], [2], [3]])
def test_maxima_of_pixels(axes, keepdims, rng, seed):
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 7, 5), 6)
    m.output(largest(m, x, axes, keepdims, rescaled=True))
    found = compared(m, seed)
    assert target(found, "ReduceMax") is Target.VECTOR
    assert "MaxPool" in kinds(found)


@pytest.mark.parametrize("channels", [2, 5, 16, 21, 40])
def test_maxima_of_channels_are_images(channels, rng, seed):
    m = OnnxMaker(rng)
    y = largest(m, m.conv(m.image(3, 5, 4), channels), [1], 1, rescaled=channels > 5)
    m.output(m.conv(y, 4))
    found = compared(m, seed)
    assert target(found, "ReduceMax") is Target.VECTOR
    assert len(found.folded.regions) == 1


@pytest.mark.parametrize("turned", [False, True])
def test_maxima_of_tokens(turned, rng, seed):
    """As the tail of a detector: scores of 20 classes for each of 12 positions."""
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 4, 3), 20)
    (value,) = m.node("Reshape", [x.name, m.constant(np.array([1, 20, 12]))])
    x = m.pair(value, (1, 20, 12), x.scale)
    if turned:
        (value,) = m.node("Transpose", [x.name], perm=[0, 2, 1])
        x = m.pair(value, (1, 12, 20), x.scale)
    m.output(largest(m, x, [2 if turned else 1], 0))
    assert target(compared(m, seed), "ReduceMax") is Target.VECTOR


def test_maxima_of_channels_and_rows_stay_with_the_host(rng, seed):
    m = OnnxMaker(rng)
    m.output(largest(m, m.conv(m.image(3, 7, 5), 6), [1, 2], 1))
    with pytest.raises(AssertionError, match="reduces axes \\(1, 2\\)"):
        compared(m, seed)


@pytest.mark.parametrize("index", [-1, 0])
def test_one_token_at_the_end(index, rng, seed):
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 4, 3), 6)
    (value,) = m.node("Transpose", [x.name], perm=[0, 2, 3, 1])
    (value,) = m.node("Reshape", [value, m.constant(np.array([1, 12, 6]))])
    (value,) = m.node("Gather", [value, m.constant(np.array(index))], axis=1)
    m.output(m.pair(value, (1, 6), x.scale))
    found = compared(m, seed)
    assert target(found, "Gather") is Target.ARRAY
    assert {t.shape for t in found.folded.output_quant.values()} == {(1, 6)}


@pytest.mark.parametrize("axis", [2, 3])
def test_one_row_or_column_of_an_image_at_the_end(axis, rng, seed):
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 4, 3), 6)
    (value,) = m.node("Gather", [x.name, m.constant(np.array(1))], axis=axis)
    m.output(m.pair(value, (1, 6, 3 if axis == 2 else 4), x.scale))
    assert target(compared(m, seed), "Gather") is Target.ARRAY


@pytest.mark.parametrize("activation", [None, "Relu"])
@pytest.mark.parametrize("axis", [1, 3])
def test_averages_of_channels(axis, activation, rng, seed):
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 4, 3), 21)
    shape = [1, 21, 4, 3]
    if axis == 3:
        (value,) = m.node("Transpose", [x.name], perm=[0, 2, 3, 1])
        x, shape = m.pair(value, (1, 4, 3, 21), x.scale), [1, 4, 3, 21]
    shape[axis] = 1
    (value,) = m.node("ReduceMean", [x.name], axes=[axis], keepdims=1)
    if activation:
        (value,) = m.node(activation, [value])
    m.output(m.pair(value, tuple(shape), x.scale * 0.6))
    assert target(compared(m, seed), "ReduceMean") is Target.ARRAY


@pytest.mark.parametrize("op", ["Mul", "Add"])
def test_attention_over_pixels(op, rng, seed):
    """CBAM: average and maximum over channels make a map that scales every channel."""
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 5, 4), 20)
    (mean,) = m.node("ReduceMean", [x.name], axes=[1], keepdims=1)
    both = m.concat([m.pair(mean, (1, 1, 5, 4), x.scale), largest(m, x, [1], 1)])
    m.output(m.conv(m.binary(op, x, m.unary("Sigmoid", m.conv(both, 1, 7), 1 / 255)), 4))
    found = compared(m, seed)
    assert len(found.folded.regions) == 1
    assert target(found, op) is Target.VECTOR


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("axis", [2, 3])
@pytest.mark.parametrize("size", [(5, 7), (9, 40), (33, 3)])
def test_averages_of_rows_or_columns(size, axis, keepdims, rng, seed):
    """As over the frequencies of a spectrum; and of rows that are channels of a matrix."""
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, *size), 6)
    shape = [1 if a == axis else n for a, n in enumerate(x.shape) if a != axis or keepdims]
    (value,) = m.node("ReduceMean", [x.name], axes=[axis], keepdims=keepdims)
    m.output(m.unary("Sigmoid", m.pair(value, tuple(shape), x.scale), 1 / 255))
    assert target(compared(m, seed), "ReduceMean") is not Target.HOST
