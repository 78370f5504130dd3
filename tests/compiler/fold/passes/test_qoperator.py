"""QLinearConv and QGemm take one scale for their input, as ONNX defines them."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from intloom.common.errors import ModelError
from intloom.compiler.fold.target import Target
from intloom.compiler.frontend import fold_model
from intloom.compiler.importer import from_proto


def model(op, scales):
    """A product of QOperator form with a bias, whose input has `scales`."""
    conv = op == "QLinearConv"
    stored = {
        "x_scale": np.array(scales, np.float32),
        "zero": np.uint8(0),
        "w": np.ones((4, 2, 1, 1) if conv else (2, 4), np.int8),
        "w_scale": np.float32(0.1),
        "w_zero": np.int8(0),
        "y_scale": np.float32(0.1),
        "bias": np.ones(4, np.int32),
    }
    x, w, y = ["x", "x_scale", "zero"], ["w", "w_scale", "w_zero"], ["y_scale", "zero"]
    inputs = [*x, *w, *y, "bias"] if conv else [*x, *w, "bias", *y]
    node = helper.make_node(op, inputs, ["y"], name="product", domain="" if conv else "com.microsoft")
    shapes = ((1, 2, 3, 3), (1, 4, 3, 3)) if conv else ((1, 2), (1, 4))
    values = [
        helper.make_tensor_value_info(name, TensorProto.UINT8, shape) for name, shape in zip("xy", shapes, strict=True)
    ]
    constants = [numpy_helper.from_array(np.asarray(array), name) for name, array in stored.items()]
    graph = helper.make_graph([node], "g", values[:1], values[1:], constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return onnx.ModelProto.FromString(helper.make_model(graph, opset_imports=opsets).SerializeToString())


@pytest.mark.parametrize("op", ["QLinearConv", "QGemm"])
@pytest.mark.parametrize("scales", [[], [0.1, 0.2]])
def test_an_input_with_no_scale_or_two_is_an_error_of_the_model(op, scales):
    with pytest.raises(ModelError, match=f"'product'.* one scale.*, not {len(scales)}"):
        fold_model(from_proto(model(op, scales), name="m"))


@pytest.mark.parametrize("op", ["QLinearAveragePool", "QLinearGlobalAveragePool"])
@pytest.mark.parametrize("last", [0, 1])
def test_pools_with_channels_last_stay_with_the_host(op, last):
    """As many rows as channels, so that the shape does not tell."""
    stored = {"s": np.float32(0.1), "z": np.uint8(3)}
    attributes = {"kernel_shape": [2, 2]} if op == "QLinearAveragePool" else {}
    node = helper.make_node(
        op, ["x", "s", "z", "s", "z"], ["y"], "p", channels_last=last, **attributes, domain="com.microsoft"
    )
    x, y = (helper.make_tensor_value_info(n, TensorProto.UINT8, s) for n, s in (("x", (1, 4, 4, 4)), ("y", None)))
    constants = [numpy_helper.from_array(np.asarray(v), n) for n, v in stored.items()]
    domains = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(helper.make_graph([node], "g", [x], [y], constants), opset_imports=domains, ir_version=8)
    (found,) = (a for a in fold_model(from_proto(model, name="m")).assignments if a.op == op)
    assert (found.target is Target.HOST) == bool(last)
