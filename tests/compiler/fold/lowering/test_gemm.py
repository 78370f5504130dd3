"""Gemm of a flattened image: the matrix must have a row for each value of the image."""

import numpy as np
import pytest

from intloom.common.errors import ModelError
from intloom.compiler.frontend import fold_model
from intloom.compiler.importer import from_proto
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
