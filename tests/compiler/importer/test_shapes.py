"""Shapes of inner values: what inference finds counts, and the file's own only where it finds nothing."""

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from intloom.compiler.importer.shapes import infer_shapes

Dims = Sequence[int | str]


def _value(name: str, dims: Dims | None, dtype: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, dims)


def _shapes(nodes: list[onnx.NodeProto], told: dict[str, Dims], last: str) -> dict[str, list[int | str]]:
    """Shapes of all inner values of a graph of one image 1x4x6x6 and a vector `size` of four numbers."""
    inputs = [_value("x", (1, 4, 6, 6)), _value("size", (4,), TensorProto.INT64), _value("yes", (), TensorProto.BOOL)]
    constants = [numpy_helper.from_array(np.zeros((4, 4, 1, 1), np.float32), "w")]
    graph = helper.make_graph(nodes, "g", inputs, [_value(last, None)], constants)
    graph.value_info.extend(_value(name, dims) for name, dims in told.items())
    domains = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1), helper.make_opsetid("com.microsoft", 1)]
    inferred = infer_shapes(helper.make_model(graph, opset_imports=domains, ir_version=8))
    return {
        v.name: [d.dim_value or d.dim_param for d in v.type.tensor_type.shape.dim] for v in inferred.graph.value_info
    }


CONV = helper.make_node("Conv", ["x", "w"], ["y"], strides=[2, 2])
RESHAPE = helper.make_node("Reshape", ["x", "size"], ["r"])


def test_a_wrong_shape_in_the_file_is_replaced():
    for kind, domain in (("Relu", ""), ("Gelu", "com.microsoft")):
        after = helper.make_node(kind, ["y"], ["z"], domain=domain)
        last = helper.make_node("Relu", ["z"], ["out"])
        found = _shapes([CONV, after, last], {"y": (1, 9, 9, 9), "z": (7, 7)}, "out")
        assert found["y"] == found["z"] == [1, 4, 3, 3]


def test_the_file_tells_the_result_of_an_operator_that_nobody_knows():
    nodes = [helper.make_node("Secret", ["x"], ["s"], domain="own"), helper.make_node("Relu", ["s"], ["z"])]
    nodes.append(helper.make_node("Relu", ["z"], ["out"]))
    found = _shapes(nodes, {"s": (1, 2, 3, 5)}, "out")
    assert found["s"] == found["z"] == [1, 2, 3, 5]


def test_the_file_tells_what_depends_on_values_of_an_input():
    """A shape of which it knows all sizes; what follows from it is inferred."""
    nodes = [RESHAPE, helper.make_node("Transpose", ["r"], ["z"], perm=[0, 2, 3, 1])]
    nodes.append(helper.make_node("Relu", ["z"], ["out"]))
    found = _shapes(nodes, {"r": (1, 3, 4, 12)}, "out")
    assert found["r"] == [1, 3, 4, 12] and found["z"] == [1, 4, 12, 3]
    found = _shapes(nodes, {"r": (1, "c", 4, 12)}, "out")
    assert not any(isinstance(n, int) and n for n in found.get("r", []) + found.get("z", []))


def test_a_shape_after_a_branch_does_not_count():
    """It may be that of one of both branches."""
    branches = {
        f"{name}_branch": helper.make_graph(
            [helper.make_node("Reshape", ["x", "size"], [name])], name, [], [_value(name, None)]
        )
        for name in ("then", "else")
    }
    nodes = [helper.make_node("If", ["yes"], ["b"], **branches), helper.make_node("Relu", ["b"], ["z"])]
    nodes += [helper.make_node("Relu", ["z"], ["out"]), helper.make_node("Reshape", ["x", "size"], ["r"])]
    found = _shapes(nodes, {"b": (1, 1, 1, 144), "z": (1, 1, 1, 144), "r": (1, 1, 1, 144)}, "out")
    assert found["r"] == [1, 1, 1, 144]
    assert 144 not in found.get("b", []) + found.get("z", [])
