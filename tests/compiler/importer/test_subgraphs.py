"""If nodes: captured values, constant conditions, branches of different shapes."""

import random

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import intloom
from intloom.common.errors import UnsupportedError
from intloom.compiler.importer import from_proto
from tests.support.onnx_maker import OnnxMaker
from tests.support.parity import assert_equal


def branch(name: str, op: str, source: str) -> onnx.GraphProto:
    made = f"{name}_result"
    return helper.make_graph([helper.make_node(op, [source], [made])], name, [], [onnx.ValueInfoProto(name=made)])


def with_if(condition: str, then: tuple[str, str] = ("Relu", ""), other: tuple[str, str] = ("Identity", "")):
    """Two convolutions with an If between them, whose branches read the first one's result or the value named."""
    m = OnnxMaker(random.Random(3))
    x = m.conv(m.image(3, 6, 6), 8)
    names = {"": x.name}
    if condition == "constant":
        chosen = m.constant(np.array(True))
    elif condition == "size":
        (shape,) = m.node("Shape", [x.name])
        (rank,) = m.node("Size", [shape])
        (chosen,) = m.node("Equal", [rank, m.constant(np.array(3))])
    else:
        (total,) = m.node("ReduceMax", ["image1"], keepdims=0)
        (chosen,) = m.node("Greater", [total, m.constant(np.float32(0.5))])
    branches = {
        "then_branch": branch("then", then[0], names.get(then[1], then[1])),
        "else_branch": branch("else", other[0], names.get(other[1], other[1])),
    }
    (value,) = m.node("If", [chosen], **branches)
    m.output(m.conv(m.pair(value, x.shape, x.scale), 4))
    return m.model()


@pytest.mark.parametrize("condition", ["constant", "size", "computed"])
def test_branches_that_capture_outer_values(condition, seed):
    found = assert_equal(with_if(condition), seed)
    kept = [v.name for v in found.folded.assignments if v.op == "If"]
    assert bool(kept) == (condition == "computed")
    assert len(found.folded.regions) == (2 if condition == "computed" else 1)
    assert intloom.Session(with_if(condition), check=True).run(None, {"image1": np.ones((1, 3, 6, 6), np.float32)})


def test_an_inlined_branch_keeps_names_unique():
    model = with_if("constant")
    node = next(n for n in model.graph.node if n.op_type == "If")
    for attribute in node.attribute:
        attribute.g.node[0].output[0] = attribute.g.output[0].name = model.graph.node[0].output[0]
    assert not [n for n in from_proto(model, name="m").nodes if n.op == "If"]


def test_branches_of_different_shapes_are_refused():
    model = with_if("computed", other=("Flatten", ""))
    with pytest.raises(UnsupportedError, match=r"one shape, not \(1, 288\) and \(1, 8, 6, 6\)"):
        from_proto(model, name="m")


def test_a_captured_host_value_crosses_the_border(seed):
    """The If reads a value of the accelerator that no other host node reads."""
    found = assert_equal(with_if("computed", then=("Neg", "")), seed)
    assert found.folded.host_parts[1] is not None


def test_a_condition_of_one_value_only():
    model = with_if("constant")
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.BOOL:
            tensor.CopyFrom(onnx.numpy_helper.from_array(np.array([True]), tensor.name))
    assert not [n for n in from_proto(model, name="m").nodes if n.op == "If"]
