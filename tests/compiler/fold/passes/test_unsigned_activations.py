"""int8 activations become uint8 activations of the same real values, whatever reads them."""

import random

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from intloom.compiler.fold.passes.unsigned_activations import use_unsigned_activations
from intloom.compiler.importer import from_proto, to_bytes
from intloom.compiler.reference import open_session
from tests.support.onnx_maker import OnnxMaker
from tests.support.parity import assert_equal, random_feeds, run_folded


def integer_model(rng: random.Random) -> onnx.ModelProto:
    """int8 input and output; a Cast, which has no rule, reads the int8 result too."""
    m = OnnxMaker(rng, "int8", opset=21)
    m.inputs.append(helper.make_tensor_value_info("x", TensorProto.INT8, (1, 3, 6, 6)))
    scale, zero = m.constant(np.float32(0.02)), m.constant(np.int8(-7))
    (value,) = m.node("DequantizeLinear", ["x", scale, zero])
    weight, scales = m.weights((4, 3, 3, 3), 0)
    (value,) = m.node("Conv", [value, weight, m.bias(scales, 0.02)])
    (stored,) = m.node("QuantizeLinear", [value, m.constant(np.float32(0.05)), m.constant(np.int8(3))], ["y"])
    (real,) = m.node("Cast", [stored], to=TensorProto.FLOAT)
    outputs = [
        helper.make_tensor_value_info("y", TensorProto.INT8, None),
        helper.make_tensor_value_info(real, TensorProto.FLOAT, None),
    ]
    graph = helper.make_graph(m.nodes, "integers", m.inputs, outputs, m.stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def test_int8_inputs_and_outputs_keep_their_type(rng: random.Random, seed: int) -> None:
    model = integer_model(rng)
    found = assert_equal(model, seed)
    made = run_folded(found.folded, random_feeds(model, seed))
    assert made["y"].dtype == np.int8
    np.testing.assert_array_equal(made[model.graph.output[1].name], made["y"].astype(np.float32))


def test_weights_and_biases_stay(rng: random.Random) -> None:
    model = from_proto(integer_model(rng), name="m")
    made = use_unsigned_activations(model)
    assert made.shifted == {"x", "y"}
    conv = next(n for n in made.nodes if n.op == "Conv")
    before = next(n for n in model.nodes if n.op == "Conv")
    for new, old in zip(conv.inputs[1:], before.inputs[1:], strict=True):
        assert made.producers[new].inputs == model.producers[old].inputs
    zero = made.constant(made.producers[conv.inputs[0]].inputs[2])
    assert zero is not None
    assert (zero.dtype, int(zero)) == (np.uint8, 121)


def test_uint8_models_are_unchanged(rng: random.Random) -> None:
    m = OnnxMaker(rng)
    m.output(m.binary("Add", m.conv(m.image(3, 6, 6), 4), m.conv(m.image(3, 6, 6), 4)))
    model = from_proto(m.model(), name="m")
    assert use_unsigned_activations(model) is model


MOVED = {
    "Pad": (helper.make_node("Pad", ["x", "pads"], ["y"]), {"pads": np.array([0, 0, 1, 0, 0, 1, 0, 2])}),
    "Pad of a mode": (
        helper.make_node("Pad", ["x", "pads"], ["y"], mode="reflect"),
        {"pads": np.array([0, 0, 1, 0, 0, 0, 2, 0])},
    ),
    "Pad with a byte": (
        helper.make_node("Pad", ["x", "pads", "byte"], ["y"]),
        {"pads": np.array([0, 1, 0, 0, 0, 0, 0, 3]), "byte": np.int8(-100)},
    ),
    "Concat": (
        helper.make_node("Concat", ["x", "other"], ["y"], axis=1),
        {"other": np.arange(-128, 128, 2, dtype=np.int8)[:24].reshape(1, 1, 4, 6)},
    ),
    "Transpose": (helper.make_node("Transpose", ["x"], ["y"], perm=[0, 2, 3, 1]), {}),
    "Slice": (
        helper.make_node("Slice", ["x", "first", "last", "axis"], ["y"]),
        {"first": np.array([1]), "last": np.array([3]), "axis": np.array([2])},
    ),
    "Gather": (helper.make_node("Gather", ["x", "which"], ["y"], axis=1), {"which": np.array([2, 0])}),
    "Tile": (helper.make_node("Tile", ["x", "times"], ["y"]), {"times": np.array([1, 2, 1, 1])}),
    "ArgMax": (helper.make_node("ArgMax", ["x"], ["y"], axis=1), {}),
    "ReduceMax": (helper.make_node("ReduceMax", ["x"], ["y"], axes=[2]), {}),
    "Split": (helper.make_node("Split", ["x", "sizes"], ["rest", "y"], axis=1), {"sizes": np.array([1, 2])}),
    "Clip": (helper.make_node("Clip", ["x", "low", "high"], ["y"]), {"low": np.int8(-20), "high": np.int8(90)}),
    "captured": (
        helper.make_node(
            "If",
            ["yes"],
            ["y"],
            then_branch=helper.make_graph(
                [helper.make_node("Cast", ["x"], ["r"], to=1)], "g", [], [onnx.ValueInfoProto(name="r")]
            ),
            else_branch=helper.make_graph(
                [helper.make_node("Cast", ["x"], ["u"], to=6), helper.make_node("Cast", ["u"], ["w"], to=1)],
                "h",
                [],
                [onnx.ValueInfoProto(name="w")],
            ),
        ),
        {},
    ),
}  # fmt: skip


def stored_first(name: str) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A float value is quantized to the int8 value x, which an operator reads; with inputs."""
    node, constants = MOVED[name]
    parameters = {"s": np.float32(0.1), "z": np.int8(5), **constants}
    nodes = [helper.make_node("QuantizeLinear", ["f", "s", "z"], ["x"]), node]
    inputs = [helper.make_tensor_value_info("f", TensorProto.FLOAT, (1, 3, 4, 6))]
    feeds = {"f": np.linspace(-14, 13, 72, dtype=np.float32).reshape(1, 3, 4, 6)[:, ::-1].copy()}
    if name == "captured":
        inputs.append(helper.make_tensor_value_info("yes", TensorProto.BOOL, ()))
        feeds["yes"] = np.array(True)
    stored = [numpy_helper.from_array(np.asarray(v), n) for n, v in parameters.items()]
    graph = helper.make_graph(nodes, "moved", inputs, [onnx.ValueInfoProto(name="y")], stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), feeds


@pytest.mark.parametrize("name", MOVED)
def test_what_reads_stored_bytes_gives_the_same_values(name: str) -> None:
    model, feeds = stored_first(name)
    made = use_unsigned_activations(from_proto(onnx.ModelProto.FromString(model.SerializeToString()), name="m"))
    assert ("x" in made.shifted) == (name != "captured")
    (expected,) = open_session(model.SerializeToString()).run(["y"], feeds)
    (found,) = open_session(to_bytes(made)).run(["y"], feeds)
    if "y" in made.shifted:
        assert (found.dtype, expected.dtype) == (np.uint8, np.int8)
        found = (found.astype(np.int16) - 128).astype(np.int8)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == expected.dtype
