"""If nodes: captured values, constant conditions, branches of different shapes."""

import random

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser
from onnx.reference import ReferenceEvaluator

import intloom
from intloom.common.errors import UnsupportedError
from intloom.compiler.importer import from_proto
from intloom.compiler.importer.subgraphs import inline_branches
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


INNER = """
agraph (float[2,3] x) => (float[2,3] y)
<bool flag = {FLAG}, float[3] w = {1, 2, 3}>
{
  a = Add (x, w)
  y = If (flag) <
    then_branch = g1 () => (float[2,3] r) <float[3] w1 = {5, 7, 9}> {
      a1 = Mul (a, w1)
      total = ReduceSum <keepdims = 0> (a1)
      zero = Constant <value = float {0}> ()
      more = Greater (total, zero)
      s = If (more) <
        then_branch = g2 () => (float[2,3] q) <float[3] w2 = {1, 0, 1}> { q = Mul (a1, w2) },
        else_branch = g3 () => (float[2,3] p) { p = Sub (a1, w1) }
      >
      r = Add (s, a1)
    },
    else_branch = g4 () => (float[2,3] u) { u = Neg (a) }
  >
}
"""


@pytest.mark.parametrize("flag", [0, 1])
@pytest.mark.parametrize("names", ["own", "taken", "shadowing"])
def test_nested_branches_compute_the_same_inlined(flag, names):
    """With initializers of their own, names that the graph around them uses, and values that hide others."""
    graph = parser.parse_graph(INNER.replace("{FLAG}", f"{{{flag}}}"))
    if names == "taken":  # a name that the first choice for a renamed value would collide with
        graph.initializer.append(numpy_helper.from_array(np.ones(3, np.float32), "y/w1"))
        graph.initializer.append(numpy_helper.from_array(np.ones(3, np.float32), "y/a1"))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    hiding = onnx.ModelProto.FromString(model.SerializeToString())
    if names == "shadowing":  # w1 of the inner branch is another one than that of the outer one
        for made, name in ((model, "other"), (hiding, "w1")):
            then = made.graph.node[1].attribute[0].g
            inner = next(n for n in then.node if n.op_type == "If").attribute[1].g
            inner.initializer.append(numpy_helper.from_array(np.array([8, 8, 8], np.float32), name))
            inner.node[0].input[1] = name
    inlined = onnx.ModelProto.FromString(hiding.SerializeToString())
    inline_branches(inlined.graph)
    onnx.checker.check_model(inlined)
    assert [n.op_type for n in inlined.graph.node].count("If") == flag
    for values in ([1, 2, 3, 4, 5, 6], [-9, -8, -7, -6, -5, -4]):
        feeds = {"x": np.array(values, np.float32).reshape(2, 3)}
        found, expected = (ReferenceEvaluator(m).run(None, feeds)[0] for m in (inlined, model))
        np.testing.assert_array_equal(found, expected)


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
