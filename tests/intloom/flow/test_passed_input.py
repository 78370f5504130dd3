"""Inputs and constants of the model that are outputs too."""

import random

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.support.onnx_maker import OnnxMaker
from tests.support.parity import folded, random_feeds, run_folded, run_onnxruntime


@pytest.mark.parametrize("kind", ["input", "constant"])
@pytest.mark.parametrize("tail", [False, True])
def test_an_output_that_no_node_computes(kind: str, tail: bool, seed: int) -> None:
    m = OnnxMaker(random.Random(seed))
    x = m.conv(m.image(3, 8, 8), 8)
    m.outputs += m.node("Erf", [x.name]) if tail else [x.name]
    constant = m.constant(np.arange(3, dtype=np.float32))
    model = m.model()
    extra = helper.make_tensor_value_info(constant, TensorProto.FLOAT, (3,))
    model.graph.output.append(model.graph.input[0] if kind == "input" else extra)
    feeds, names = random_feeds(model, seed), [o.name for o in model.graph.output]
    made, expected = run_folded(folded(model), feeds), run_onnxruntime(model.SerializeToString(), feeds, names)
    for name in names:
        np.testing.assert_array_equal(made[name], expected[name])
