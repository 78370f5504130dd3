"""onnxruntime as the reference model adds exact products on every processor."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from numpy.typing import DTypeLike, NDArray
from onnx import TensorProto, helper, numpy_helper

from intloom.compiler.reference import open_session

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


@pytest.mark.parametrize("shared", ["weights", "zeros"])
def test_sums_do_not_saturate_where_two_convolutions_share_a_tensor(shared: str) -> None:
    """With exact sums, onnxruntime fails to load such models on x86 processors without VNNI."""
    row = np.full((1, 64, 1, 1), 255, np.uint8)
    names = ("xs", "xz", "w", "ws", "wz", "ys", "yz")
    values = dict(zip(names, (np.float32(1), np.uint8(0), WEIGHTS[:, :, None, None], np.ones(2, np.float32),
                              np.zeros(2, np.int8), STEP, np.uint8(128)), strict=True))  # fmt: skip
    stored = {name: np.asarray(value) for name, value in values.items()}
    own = {"w", "wz"} - {"w" if shared == "weights" else "wz"}
    # A name that a copy would get is already in use.
    stored |= {f"{name}_2": stored[name] for name in own} | {"wz_3": stored["wz"], "unused": stored["w"]}
    graph_inputs = [helper.make_tensor_value_info("x", TensorProto.UINT8, [1, 64, 1, 1])]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 2, 1, 1]) for name in ("y1", "y2")]
    nodes = [helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["xf"])]
    for number in ("1", "2"):
        weights = [name if number == "1" or name not in own else f"{name}_2" for name in ("w", "ws", "wz")]
        nodes += [
            helper.make_node("DequantizeLinear", weights, [f"wf{number}"], axis=0),
            helper.make_node("Conv", ["xf", f"wf{number}"], [f"c{number}"]),
            helper.make_node("QuantizeLinear", [f"c{number}", "ys", "yz"], [f"q{number}"]),
            helper.make_node("DequantizeLinear", [f"q{number}", "ys", "yz"], [f"y{number}"]),
        ]
    constants = [numpy_helper.from_array(value, name) for name, value in stored.items()]
    graph = helper.make_graph(nodes, "shared", graph_inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    whole = row[0, :, 0, 0].astype(np.int64) @ WEIGHTS.astype(np.int64).T
    expected = np.clip(np.rint(whole / STEP), -128, 127) * STEP
    for y in open_session(model.SerializeToString()).run(None, {"x": row}):
        np.testing.assert_array_equal(np.asarray(y)[0, :, 0, 0], expected)
