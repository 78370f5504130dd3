"""Models for which onnx's shape inference would abort the process are refused."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from intloom.common.errors import ModelError
from intloom.compiler.importer.contributed import infer_with_contributed
from intloom.compiler.importer.guarded_inference import guarded_inference


def slice_node(value: str, made: str) -> onnx.NodeProto:
    return helper.make_node("Slice", [value, "starts", "ends", "axes"], [made], name="cut")


def model(nodes: list[onnx.NodeProto], shape: list[int], opset: int = 17) -> onnx.ModelProto:
    values = {"starts": 0, "ends": 2, "axes": 2, "huge": 1 << 62}
    numbers = [helper.make_tensor(n, TensorProto.INT64, [1], [v]) for n, v in values.items()]
    weights = helper.make_tensor("w", TensorProto.FLOAT, [1, 1, 9, 9], [0.0] * 81)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "g", [x], [y], [*numbers, weights])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def in_branches() -> onnx.ModelProto:
    """A Slice of a negative size in both branches of an If, whose condition is an input."""
    made = helper.make_tensor_value_info("made", TensorProto.FLOAT, None)
    branch = helper.make_graph([slice_node("c", "made")], "branch", [], [made])
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("If", ["condition"], ["y"], then_branch=branch, else_branch=branch),
    ]
    result = model(nodes, [1, 1, 3, 3])
    result.graph.input.append(helper.make_tensor_value_info("condition", TensorProto.BOOL, []))
    return result


def unchecked(op: str, inputs: list[str], outputs: int = 1, **attributes: int) -> list[onnx.NodeProto]:
    return [helper.make_node(op, inputs, ["y", *(f"y{i}" for i in range(1, outputs))], name=op, **attributes)]


CONV = helper.make_node("Conv", ["x", "w"], ["c"])
NEGATIVE = "of its input 'c' must not be negative, not -5"
REFUSED = {
    "a branch": (in_branches(), NEGATIVE),
    "axis": (model(unchecked("LayerNormalization", ["x", "w"], 3, axis=1 << 31), [1, 1, 3, 3]), "axis must be an axis"),
    "batch_dims": (model(unchecked("GatherND", ["x", "starts"], batch_dims=-2), [1, 1, 3, 3]), "not -2"),
    "GatherND": (model([CONV, *unchecked("GatherND", ["x", "c"])], [1, 1, 3, 3]), NEGATIVE),
    "inferred": (model([CONV, slice_node("c", "y")], [1, 1, 3, 3]), NEGATIVE),
    "input": (model([slice_node("x", "y")], [1, 1, -3, 3]), "not -3"),
    "old opset": (model([CONV, slice_node("c", "y")], [1, 1, 3, 3], 11), NEGATIVE),
    "parts": (model(unchecked("Split", ["x"], 4, num_outputs=2), [1, 4, 3, 3], 18), "number of outputs, 4, not 2"),
    "shape data": (
        model([helper.make_node("ConstantOfShape", ["huge"], ["c"]), *unchecked("Cast", ["c"], to=1)], [1, 1, 3, 3]),
        "must be at most 2097152 as the only one, not 4611686018427387904",
    ),
}
"""Models for which onnx reads outside its arrays, stops at an assertion, or fills the memory; and the error."""


def test_what_the_library_does_not_check_is_refused(tmp_path: Path) -> None:
    """In a process of its own: without the guard the library ends the process by SIGABRT or SIGSEGV."""
    for name, (made, _) in REFUSED.items():
        onnx.save(made, tmp_path / f"{name}.onnx")
    code = """
import sys
from pathlib import Path
from intloom.common.errors import ModelError, UnsupportedError
from intloom.compiler.importer import load_model
for path in sorted(Path(sys.argv[1]).iterdir()):
    try:
        load_model(path)
    except (ModelError, UnsupportedError) as error:
        print(path.stem, error, sep=": ", flush=True)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=120, check=False
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0, (done.returncode, lines, done.stderr)
    assert [line.split(":")[0] for line in lines] == sorted(REFUSED)
    for line in lines:
        assert REFUSED[line.split(":")[0]][1] in line


@pytest.mark.parametrize("strict", [True, False])
def test_the_library_is_not_reached_with_a_negative_size(strict: bool) -> None:
    with pytest.raises(ModelError, match="node 'cut': dimension 2 of its input 'c' must not be negative, not -5"):
        guarded_inference(REFUSED["inferred"][0], strict=strict)


def test_guards_leave_no_trace() -> None:
    given = model([slice_node("x", "y")], [1, 1, 3, 3])
    before = given.SerializeToString()
    result = guarded_inference(given)
    assert given.SerializeToString() == before
    assert [n.op_type for n in result.graph.node] == ["Slice"]
    assert [o.domain for o in result.opset_import] == [""]
    assert [v.name for v in result.graph.value_info] == []
    assert [d.dim_value for d in result.graph.output[0].type.tensor_type.shape.dim] == [1, 1, 2, 3]


def test_a_value_of_unknown_shape_keeps_its_type_through_contributed_operators():
    """ONNX's QLinearMatMul rejects operands without a type; the shape here is an input."""
    constants = {"s": np.float32(0.1), "z": np.uint8(3), "w": np.zeros((4, 2), np.uint8)}
    nodes = [
        helper.make_node("Reshape", ["x", "shape"], ["a"]),
        helper.make_node("QLinearAdd", ["a", "s", "z", "a", "s", "z", "s", "z"], ["b"], domain="com.microsoft"),
        helper.make_node("QLinearMatMul", ["b", "s", "z", "w", "s", "z", "s", "z"], ["y"]),
    ]
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.UINT8, [3, 4]),
        helper.make_tensor_value_info("shape", TensorProto.INT64, None),
    ]
    outputs = [helper.make_tensor_value_info("y", TensorProto.UINT8, None)]
    tensors = [numpy_helper.from_array(np.asarray(v), n) for n, v in constants.items()]
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(helper.make_graph(nodes, "g", inputs, outputs, tensors), opset_imports=opsets)
    types = {v.name: v.type.tensor_type for v in infer_with_contributed(model).graph.value_info}
    assert types["b"].elem_type == TensorProto.UINT8
    assert not types["b"].HasField("shape")
