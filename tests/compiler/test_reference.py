"""onnxruntime, asked as the reference, adds whole products on every processor."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from numpy.typing import DTypeLike, NDArray
from onnx import TensorProto, helper, numpy_helper

from compiler.reference import open_session

Array = NDArray[np.generic]
STEP = np.float32(2**16)
WEIGHTS = np.array([[127], [-128]], np.int8).repeat(64, axis=1)
KINDS = {np.uint8: TensorProto.UINT8, np.int8: TensorProto.INT8}


def model_of(operator: str, kind: type[np.uint8] | type[np.int8], weights: Array, shapes: list[list[int]]) -> bytes:
    zero = np.zeros((), kind)
    middle = kind(128 if kind is np.uint8 else 0)
    one = np.float32(1)
    constants = {"xs": one, "xz": zero, "w": weights, "ws": one, "wz": np.int8(0), "ys": STEP, "yz": middle}
    values = [helper.make_tensor_value_info(n, KINDS[kind], s) for n, s in zip("xy", shapes, strict=True)]
    node = helper.make_node(operator, ["x", *constants], ["y"])
    stored = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph([node], "largest", values[:1], values[1:], stored)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model.SerializeToString()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("end", ["min", "max"])
def test_sums_of_the_largest_products_do_not_saturate(kind: type[np.uint8] | type[np.int8], end: str) -> None:
    value: DTypeLike = getattr(np.iinfo(kind), end)
    row = np.full((1, 64), value, kind)
    whole = row.astype(np.int64) @ WEIGHTS.astype(np.int64).T
    expected = np.rint(whole / STEP).astype(np.int64) + (128 if kind is np.uint8 else 0)
    matrix = model_of("QLinearMatMul", kind, WEIGHTS.T.copy(), [[1, 64], [1, 2]])
    (y,) = open_session(matrix).run(None, {"x": row})
    np.testing.assert_array_equal(y, expected)
    image = model_of("QLinearConv", kind, WEIGHTS[:, :, None, None], [[1, 64, 1, 1], [1, 2, 1, 1]])
    (y,) = open_session(image).run(None, {"x": row[:, :, None, None]})
    np.testing.assert_array_equal(y[:, :, 0, 0], expected)
