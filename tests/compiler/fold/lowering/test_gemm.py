"""Gemm of a flattened image, whose matrix has a row for each value, and images made of the result of one."""

import math

import numpy as np
import pytest

from intloom.common.errors import ModelError
from intloom.compiler.fold.target import Target
from intloom.compiler.frontend import fold_model
from intloom.compiler.importer import from_proto
from tests.support.lowered import compared, kinds
from tests.support.onnx_maker import OnnxMaker


@pytest.mark.parametrize("size", [26, 28])
def test_a_reshape_to_another_number_of_values_is_an_error_of_the_model(size, rng):
    m = OnnxMaker(rng)
    x = m.image(3, 3, 3)
    (row,) = m.node("Reshape", [x.name, m.constant(np.array([1, size], np.int64))])
    flat = m.pair(row, (1, size), x.scale, 0)
    weight, _ = m.weights((size, 4), 1)
    (value,) = m.node("Gemm", [flat.name, weight])
    m.output(m.pair(value, (1, 4), 0.05))
    with pytest.raises(ModelError, match=f"Reshape_node.* 27 values, .* {size} values"):
        fold_model(from_proto(m.model(), name="m"))


@pytest.mark.parametrize(
    ("shape", "channels_last", "steps"),
    [((5, 4, 4), False, 2), ((40, 1, 4), False, 1), ((2, 7, 7), False, 2), ((6, 4, 3), True, 2), ((3, 15, 1), True, 1)],
)
def test_a_vector_becomes_an_image(shape, channels_last, steps, rng, seed):
    """As at the start of a decoder: channels of the only pixel are spread over rows, then over columns."""
    m = OnnxMaker(rng)
    x = m.image(20, 1, 1, 9)
    row = m.pair(*m.node("Flatten", [x.name]), (1, 20), x.scale, 9)
    weight, scales = m.weights((math.prod(shape), 20), 0)
    (value,) = m.node("Gemm", [row.name, weight, m.bias(scales, row.scale)], transB=1)
    flat = m.pair(value, (1, math.prod(shape)), row.scale * 20, 100)
    size = (1, *shape[1:], shape[0]) if channels_last else (1, *shape)
    image = m.pair(*m.node("Reshape", [flat.name, m.constant(np.array(size))]), size, flat.scale, 100)
    if channels_last:
        (turned,) = m.node("Transpose", [image.name], perm=[0, 3, 1, 2])
        image = m.pair(turned, (1, *shape), flat.scale, 100)
    m.output(m.conv(image, 6))
    found = compared(m, seed)
    assert kinds(found).count("ConvTranspose") == steps
    assert len(found.folded.regions) == 1


def test_a_large_image_of_a_vector_stays_with_the_host(rng):
    m = OnnxMaker(rng)
    row = m.pair(*m.node("Flatten", [m.conv(m.image(3, 1, 1), 256, 1).name]), (1, 256), 0.1)
    (value,) = m.node("Reshape", [row.name, m.constant(np.array((1, 1, 16, 16)))])
    m.output(m.conv(m.pair(value, (1, 1, 16, 16), 0.1), 6))
    assignment = [a for a in fold_model(from_proto(m.model(), name="m")).assignments if a.op == "Conv"][-1]
    assert (assignment.target, assignment.row) == (Target.HOST, 18)
