"""int8 activations become uint8 activations of the same real values, whatever reads them."""

import random

import numpy as np
import onnx
from onnx import TensorProto, helper

from intloom.compiler.fold.passes.unsigned_activations import use_unsigned_activations
from intloom.compiler.importer import from_proto
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
