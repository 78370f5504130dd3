"""onnxruntime as the reference model adds exact products on every processor."""

import random
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import DTypeLike, NDArray
from onnx import TensorProto, helper

from intloom.compiler.frontend import fold_model
from intloom.compiler.importer import from_proto
from intloom.compiler.importer.emit import to_proto
from intloom.compiler.reference import open_session, plain_session, saturates_sums
from tests.support.given_model import given_model
from tests.support.onnx_maker import OnnxMaker

Array = NDArray[np.generic]
STEP = np.float32(2**16)
WEIGHTS = np.array([[127], [-128]], np.int8).repeat(64, axis=1)
KINDS = {np.uint8: TensorProto.UINT8, np.int8: TensorProto.INT8}


def model_of(operator: str, kind: type[np.uint8] | type[np.int8], weights: Array, shapes: list[list[int]]) -> bytes:
    zero = np.zeros((), kind)
    middle = kind(128 if kind is np.uint8 else 0)
    one = np.float32(1)
    constants = {"xs": one, "xz": zero, "w": weights, "ws": one, "wz": np.int8(0), "ys": STEP, "yz": middle}
    node = helper.make_node(operator, ["x", *constants], ["y"])
    types = dict.fromkeys("xy", KINDS[kind])
    model = given_model([node], {"x": shapes[0]}, {"y": shapes[1]}, constants, types=types)
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
    stack = model_of("QLinearMatMul", kind, np.stack([WEIGHTS.T, -WEIGHTS.T - 1]), [[2, 1, 64], [2, 1, 2]])
    (y,) = open_session(stack).run(None, {"x": np.stack([row, row])})
    np.testing.assert_array_equal(y[0], expected)
    image = model_of("QLinearConv", kind, WEIGHTS[:, :, None, None], [[1, 64, 1, 1], [1, 2, 1, 1]])
    (y,) = open_session(image).run(None, {"x": row[:, :, None, None]})
    np.testing.assert_array_equal(y[:, :, 0, 0], expected)


def test_whether_default_sessions_saturate_on_this_processor() -> None:
    row = np.full((1, 64), 255, np.uint8)
    matrix = model_of("QLinearMatMul", np.uint8, WEIGHTS.T.copy(), [[1, 64], [1, 2]])
    (default,), (whole,) = (start(matrix).run(None, {"x": row}) for start in (plain_session, open_session))
    assert saturates_sums() == (not np.array_equal(default, whole))


@pytest.mark.parametrize("shared", ["weights", "zeros", "pair"])
def test_sums_do_not_saturate_where_two_convolutions_share_a_tensor(shared: str) -> None:
    """With exact sums, onnxruntime fails to load such models on x86 processors without VNNI."""
    row = np.full((1, 64, 1, 1), 255, np.uint8)
    names = ("xs", "xz", "w", "ws", "wz", "ys", "yz")
    values = dict(zip(names, (np.float32(1), np.uint8(0), WEIGHTS[:, :, None, None], np.ones(2, np.float32),
                              np.zeros(2, np.int8), STEP, np.uint8(128)), strict=True))  # fmt: skip
    stored = {name: np.asarray(value) for name, value in values.items()}
    own = {"weights": {"wz"}, "zeros": {"w"}, "pair": set[str]()}[shared]
    # A name that a copy would get is already in use.
    stored |= {f"{name}_2": stored[name] for name in own} | {"wz_3": stored["wz"], "unused": stored["w"]}
    outputs = dict.fromkeys(("y1", "y2"), (1, 2, 1, 1))
    nodes = [helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["xf"])]
    for number in ("1", "2"):
        weights = [name if number == "1" or name not in own else f"{name}_2" for name in ("w", "ws", "wz")]
        read = "wf1" if shared == "pair" else f"wf{number}"
        if read == f"wf{number}":
            nodes.append(helper.make_node("DequantizeLinear", weights, [read], axis=0))
        nodes += [
            helper.make_node("Conv", ["xf", read], [f"c{number}"]),
            helper.make_node("QuantizeLinear", [f"c{number}", "ys", "yz"], [f"q{number}"]),
            helper.make_node("DequantizeLinear", [f"q{number}", "ys", "yz"], [f"y{number}"]),
        ]
    model = given_model(nodes, {"x": row.shape}, outputs, stored, types={"x": TensorProto.UINT8})
    onnx.checker.check_model(model)
    whole = row[0, :, 0, 0].astype(np.int64) @ WEIGHTS.astype(np.int64).T
    expected = np.clip(np.rint(whole / STEP), -128, 127) * STEP
    for y in open_session(model.SerializeToString()).run(None, {"x": row}):
        np.testing.assert_array_equal(np.asarray(y)[0, :, 0, 0], expected)


@pytest.mark.parametrize("clamp", ["Relu", "Clip"])
@pytest.mark.parametrize("zero", [0, 58])
def test_sums_before_a_clamp_are_integers(clamp: str, zero: int, rng: random.Random, tmp_path: Path) -> None:
    """onnxruntime drops a Relu where the zero point is the smallest byte; with another one it would sum in float."""
    m = OnnxMaker(rng)
    image = m.image(3, 8, 8)
    weights, found = m.weights((4, 3, 3, 3), 0)
    (value,) = m.node("Conv", [image.name, weights, m.bias(found, image.scale)], pads=[1] * 4)
    bounds = [m.constant(np.float32(v)) for v in (-0.1, 1.1)] if clamp == "Clip" else []
    (value,) = m.node(clamp, [value, *bounds])
    m.output(m.pair(value, (1, 4, 8, 8), 0.01, zero))
    folded = fold_model(from_proto(m.model(), name="m"))
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    options.log_severity_level = 4
    data = to_proto(folded.reference or folded.model).SerializeToString()
    onnxruntime.InferenceSession(data, options, ["CPUExecutionProvider"])
    made = [n.op_type for n in onnx.load(tmp_path / "optimized.onnx").graph.node]
    assert "QLinearConv" in made
    assert "FusedConv" not in made and "Conv" not in made


def test_a_subgraph_reads_a_value_of_successive_pairs() -> None:
    """onnxruntime removes the inner pair by default, and aborts the process because the If reads its neighbor."""
    names = ["scale", "zero"]

    def branch(result: str) -> onnx.GraphProto:
        node = helper.make_node("Identity", ["q2"], [result])
        return helper.make_graph([node], result, [], [onnx.ValueInfoProto(name=result)])

    nodes = [
        helper.make_node("QuantizeLinear", ["x", *names], ["q1"]),
        helper.make_node("DequantizeLinear", ["q1", *names], ["d1"]),
        helper.make_node("Identity", ["d1"], ["same"]),
        helper.make_node("QuantizeLinear", ["same", *names], ["q2"]),
        helper.make_node("If", ["chosen"], ["q3"], then_branch=branch("one"), else_branch=branch("other")),
        helper.make_node("DequantizeLinear", ["q3", *names], ["y"]),
    ]
    stored, types = {"scale": 0.5, "zero": np.uint8(3)}, {"chosen": TensorProto.BOOL}
    model = given_model(nodes, {"x": (1, 4), "chosen": ()}, {"y": None}, stored, types=types)
    row = np.array([[0.5, 1.2, -0.7, 3]], np.float32)
    (made,) = open_session(model.SerializeToString()).run(None, {"x": row, "chosen": np.array(True)})
    np.testing.assert_array_equal(made, [[0.5, 1, -0.5, 3]])
