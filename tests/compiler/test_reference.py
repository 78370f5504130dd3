"""onnxruntime, asked as the reference, adds whole products on every processor."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from compiler.reference import session_options


def test_sums_of_the_largest_products_do_not_saturate() -> None:
    weights = np.full((64, 8), 127, np.int8)
    weights[:, ::2] = -128
    scales = {"xs": np.float32(1), "ws": np.float32(1), "ys": np.float32(2**16)}
    zeros = {"xz": np.uint8(0), "wz": np.int8(0), "yz": np.uint8(128)}
    constants = {"w": weights, **scales, **zeros}
    node = helper.make_node("QLinearMatMul", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"], ["y"])
    graph = helper.make_graph(
        [node],
        "largest",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, (4, 64))],
        [helper.make_tensor_value_info("y", TensorProto.UINT8, (4, 8))],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    x = np.full((4, 64), 255, np.uint8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), session_options(), ["CPUExecutionProvider"])
    (y,) = session.run(None, {"x": x})
    whole = x.astype(np.int64) @ weights.astype(np.int64)
    np.testing.assert_array_equal(y, np.rint(whole / 2**16).astype(np.int64) + 128)
