"""Unusual structure that random changes found: each model is refused with its reason, or runs and is equal."""

import random

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import intloom
from intloom.common.errors import IntloomError
from tests.support.mutant_outcome import outcome
from tests.support.onnx_maker import OnnxMaker


@pytest.fixture
def maker() -> OnnxMaker:
    return OnnxMaker(random.Random(5))


def made(m: OnnxMaker) -> onnx.ModelProto:
    """Two convolutions."""
    m.output(m.conv(m.conv(m.image(3, 6, 6), 8), 4))
    return m.model()


def equal(model: onnx.ModelProto) -> None:
    found = outcome(model, 1)
    assert found.kind == "equal", found


def error_of(model: onnx.ModelProto) -> str:
    with pytest.raises(IntloomError) as caught:
        intloom.compile(model, "nano")
    return str(caught.value)


def test_an_output_without_a_type_that_is_an_input(maker):
    model = made(maker)
    model.graph.output.append(onnx.ValueInfoProto(name=model.graph.input[0].name))
    equal(model)


def test_node_names_that_occur_twice(maker):
    model = made(maker)
    for node in model.graph.node:
        node.name = "same"
    equal(model)


def test_a_function_without_opset_import_and_a_name_twice(maker):
    model = made(maker)
    node = next(n for n in model.graph.node if n.op_type == "Conv")
    names = [f"in{i}" for i in range(len(node.input))]
    body = helper.make_node("Conv", names, ["out"], name=node.name)
    body.attribute.extend(node.attribute)
    model.functions.append(
        helper.make_function("local", "Block", names, ["out"], [body], [helper.make_opsetid("", 17)])
    )
    node.op_type, node.domain = "Block", "local"
    del node.attribute[:]
    model.opset_import.append(helper.make_opsetid("local", 1))
    equal(model)


def test_an_operator_of_another_domain_with_a_known_name(maker):
    model = made(maker)
    model.opset_import.append(helper.make_opsetid("acme", 1))
    model.graph.node[-1].domain = "acme"
    assert "acme::DequantizeLinear" in error_of(model)


def test_two_versions_of_the_standard_operators(maker):
    model = made(maker)
    model.opset_import.append(helper.make_opsetid("ai.onnx", 1))
    assert "one version of the standard operator set, not [17, 1]" in error_of(model)


def test_an_unknown_operator_that_no_output_needs(maker):
    model = made(maker)
    model.opset_import.append(helper.make_opsetid("acme", 1))
    model.graph.node.append(helper.make_node("Mystery", [model.graph.output[0].name], ["unused"], domain="acme"))
    equal(model)


def test_wrong_shapes_of_inner_values(maker):
    model = made(maker)
    for value in model.graph.value_info:
        for dim in value.type.tensor_type.shape.dim:
            dim.dim_value = 5
    equal(model)


def test_parameters_of_a_host_node_with_a_wrong_shape(maker):
    x = maker.conv(maker.image(3, 6, 6), 8)
    (value,) = maker.node("Exp", [x.name])
    (stored,) = maker.node("QuantizeLinear", [value, maker.constant(np.ones(3, np.float32))], axis=1)
    maker.outputs += maker.node("DequantizeLinear", [stored, maker.constant(np.ones(3, np.float32))], axis=1)
    assert "must have 8 scales, one per slice, not 3" in error_of(maker.model())


def test_a_bias_of_the_wrong_length(maker):
    model = made(maker)
    node = [n for n in model.graph.node if n.op_type == "Conv"][1]
    model.graph.initializer.append(helper.make_tensor("short", TensorProto.FLOAT, [3], [0.0] * 3))
    node.input[2] = "short"
    assert "its bias must have shape (4,), not (3,)" in error_of(model)


def test_two_kinds_of_padding(maker):
    model = made(maker)
    node = next(n for n in model.graph.node if n.op_type == "Conv")
    node.attribute.append(helper.make_attribute("auto_pad", "SAME_UPPER"))
    assert "pads and auto_pad SAME_UPPER exclude each other" in error_of(model)


def test_weights_of_other_channels(maker):
    model = made(maker)
    first, second = (n for n in model.graph.node if n.op_type == "Conv")
    second.input[1] = first.input[1]
    model.graph.output[0].ClearField("type")
    assert "must take 8 channels, not 3" in error_of(model)


def test_a_subgraph_that_reads_a_moved_value(maker):
    """onnxruntime's propagation of pairs aborts the process where a subgraph reads a dequantized value."""
    x = maker.maxpool(maker.conv(maker.image(3, 6, 6), 8))
    (total,) = maker.node("ReduceMax", ["image1"], keepdims=0)
    (chosen,) = maker.node("Greater", [total, maker.constant(np.float32(0.5))])

    def branch(op: str) -> onnx.GraphProto:
        made = onnx.ValueInfoProto(name=f"{op}_result")
        return helper.make_graph([helper.make_node(op, [x.name], [made.name])], op, [], [made])

    (value,) = maker.node("If", [chosen], then_branch=branch("Relu"), else_branch=branch("Neg"))
    maker.output(maker.pair(value, x.shape, x.scale))
    equal(maker.model())
