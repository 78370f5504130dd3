"""The float tail begins after the last trained layer."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from intloom.quantization.tail import float_tail


def detector(weights_as: str):
    """Two heads with a Softmax over their joined scores; the second head follows a later convolution."""
    array = np.random.default_rng(0).normal(size=(4, 4, 1, 1)).astype(np.float32)
    nodes, stored = [], []
    if weights_as == "initializer":
        stored.append(numpy_helper.from_array(array, "w"))
    else:
        nodes.append(helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(array), name="constant"))
        nodes.append(helper.make_node("Identity", ["c"], ["w"], name="copy"))
    if weights_as == "constant":
        nodes[-1:] = []
        nodes[0].output[0] = "w"
    for name, source in (("a", "x"), ("b", "a"), ("head1", "a"), ("head2", "b")):
        nodes.append(helper.make_node("Conv", [source, "w"], [name], name=name))
    nodes.append(helper.make_node("Concat", ["head1", "head2"], ["all"], axis=2, name="join"))
    nodes.append(helper.make_node("Softmax", ["all"], ["scores"], axis=1, name="softmax"))
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 4, 8, 8]) for n in ("x",)]
    outputs = [helper.make_tensor_value_info("scores", TensorProto.FLOAT, None)]
    return helper.make_graph(nodes, "g", ends, outputs, stored)


@pytest.mark.parametrize("weights_as", ["initializer", "constant", "computed"])
def test_no_convolution_is_in_the_tail(weights_as):
    assert float_tail(detector(weights_as)) == ["join", "softmax"]
