"""Import of model files: valid forms, and error messages for invalid ones."""

import random
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from intloom.cli.options import parse_dims
from intloom.common.errors import FileFormatError, ModelError, UnsupportedError, UsageError
from intloom.compiler.frontend import fold_model
from intloom.compiler.importer import from_proto, load_model
from intloom.compiler.importer.load import Origin
from intloom.preprocess import preprocess
from tests.support.onnx_maker import OnnxMaker


def one_node(op: str = "Relu", shape: list[object] | None = None, **more: object) -> onnx.ModelProto:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape or [1, 3, 8, 8])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node(op, ["x"], ["y"], **more)], "g", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def quantized(rng: random.Random) -> onnx.ModelProto:
    m = OnnxMaker(rng)
    m.output(m.conv(m.image(3, 8, 8), 4))
    return m.model()


def test_content_makes_the_hash_and_not_the_path(tmp_path: Path, rng: random.Random) -> None:
    model = quantized(rng)
    for name in ("a.onnx", "b.onnx"):
        onnx.save(model, tmp_path / name)
    a, b = (load_model(tmp_path / n) for n in ("a.onnx", "b.onnx"))
    assert a.source == b.source
    assert (a.name, b.name) == ("a", "b")


def test_external_data_counts_as_content(tmp_path: Path, rng: random.Random) -> None:
    model = quantized(rng)
    onnx.save(model, tmp_path / "in.onnx")
    onnx.save(model, tmp_path / "out.onnx", save_as_external_data=True, location="out.bin", size_threshold=0)
    inside, outside = load_model(tmp_path / "in.onnx"), load_model(tmp_path / "out.onnx")
    for name, constant in inside.constants.items():
        np.testing.assert_array_equal(outside.constants[name].array, constant.array)
    data = bytearray((tmp_path / "out.bin").read_bytes())
    data[0] ^= 1
    (tmp_path / "out.bin").write_bytes(data)
    assert load_model(tmp_path / "out.onnx").source != outside.source
    (tmp_path / "out.bin").unlink()
    with pytest.raises(FileFormatError, match="external data"):
        load_model(tmp_path / "out.onnx")


@pytest.mark.parametrize("data", [b"", b"not a model", b"\x08"])
def test_other_files_are_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.onnx").write_bytes(data)
    with pytest.raises(FileFormatError, match="must be an ONNX model"):
        load_model(tmp_path / "x.onnx")


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="No such file"):
        load_model(tmp_path / "none.onnx")


def test_open_dimensions_are_fixed_or_refused() -> None:
    model = one_node(shape=["batch", 3, None, 8])
    with pytest.raises(UnsupportedError, match="--shape x=1,3,N,8"):
        from_proto(model, name="m")
    with pytest.raises(UnsupportedError, match=r"'x\.2' is open: set the sizes with --shape x=2,3,N,8"):
        from_proto(one_node(shape=["batch", 3, None, 8]), name="m", dims={"batch": 2})
    fixed = from_proto(one_node(shape=["batch", 3, None, 8]), name="m", dims={"batch": 1, "x.2": 5})
    assert fixed.shape("y") == (1, 3, 5, 8)


def test_only_a_batch_becomes_1() -> None:
    """The open size of a vector is its length."""
    assert from_proto(one_node(shape=["n", 3]), name="m").dims == {"n": 1}
    with pytest.raises(UnsupportedError, match=r"'n' is open: set the sizes with --shape x=N$"):
        from_proto(one_node(shape=["n"]), name="m")
    assert from_proto(one_node(shape=["n"]), name="m", dims={"x": 5}).shape("y") == (5,)


def test_question_marks_are_no_names() -> None:
    fixed = from_proto(one_node(shape=[-1, 3, "?", "?"]), name="m", dims=parse_dims(["x=1,3,48,192"]))
    assert fixed.shape("y") == (1, 3, 48, 192)
    assert fixed.dims == {"x.0": 1, "x.2": 48, "x.3": 192}


@pytest.mark.parametrize("open_size", [-1, 0, None, "any"])
def test_a_shape_names_every_axis(open_size: int | str | None) -> None:
    """Paddle2ONNX writes -1 for open sizes; a shape may repeat the sizes of the file."""
    dims = parse_dims(["x=1,3,6,8"])
    fixed = from_proto(one_node(shape=[open_size, 3, open_size if open_size != "any" else "h", 8]), name="m", dims=dims)
    assert fixed.shape("x") == fixed.shape("y") == (1, 3, 6, 8)


def test_a_shape_replaces_a_missing_one() -> None:
    model = one_node()
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.ClearField("shape")
    with pytest.raises(UnsupportedError, match="--shape x=N"):
        from_proto(model, name="m")
    assert from_proto(model, name="m", dims={"x.0": 1, "x.1": 4}).shape("y") == (1, 4)


@pytest.mark.parametrize(
    ("dims", "said"),
    [
        ({"x.1": 4}, "dimension 1 of input 'x' is 3, not 4"),
        ({"x.4": 4}, "no open dimension is named 'x.4': open are n, inputs are 'x'"),
        ({"n": 2, "x.0": 3}, "dimension 0 of input 'x' is 2, not 3"),
        ({"n": 1 << 20}, "from 1 to 1048575"),
    ],
)
def test_contradicting_sizes_are_refused(dims: dict[str, int], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        from_proto(one_node(shape=["n", 3, 8, 8]), name="m", dims=dims)


def test_opset_7_to_9_is_converted() -> None:
    for opset in (7, 8, 9):
        m = OnnxMaker(random.Random(opset))
        m.output(m.conv(m.image(3, 6, 6), 4))
        model = m.model()
        for node in model.graph.node:
            if node.op_type in ("QuantizeLinear", "DequantizeLinear"):
                node.domain = "com.microsoft"
        model.opset_import[0].version = opset
        model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
        folded = fold_model(from_proto(model, name="old"))
        assert [type(n).__name__ for n in folded.whole.nodes] == ["Conv"]


def doubling(depth: int) -> onnx.ModelProto:
    """Functions of which each calls the one before it twice."""
    model = one_node()
    for level in range(depth):
        op, domain = (f"F{level - 1}", "f") if level else ("Relu", "")
        calls = [helper.make_node(op, [a], [b], domain=domain) for a, b in (("a", "b"), ("b", "c"))]
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("f", 1)]
        model.functions.append(helper.make_function("f", f"F{level}", ["a"], ["c"], calls, opsets))
    model.graph.node[0].op_type, model.graph.node[0].domain = f"F{depth - 1}", "f"
    model.opset_import.append(helper.make_opsetid("f", 1))
    return model


def test_exponential_functions_are_refused_at_once() -> None:
    with pytest.raises(UnsupportedError, match="at most 100,000 nodes .*, but it has 2,199,023,255,552"):
        from_proto(doubling(41), name="m")
    assert len(from_proto(doubling(3), name="m").nodes) == 8


@pytest.mark.parametrize("callers_first", [False, True])
def test_calls_in_branches_count(callers_first: bool) -> None:
    """Whatever the order of the functions in the file."""
    model = doubling(41)
    for function in model.functions:
        result = onnx.ValueInfoProto(name="c")
        branch = helper.make_graph(list(function.node), "branch", [], [result])
        del function.node[:]
        function.node.append(helper.make_node("If", ["a"], ["c"], then_branch=branch, else_branch=branch))
    functions = sorted(model.functions, key=lambda f: int(f.name[1:]), reverse=callers_first)
    del model.functions[:]
    model.functions.extend(functions)
    with pytest.raises(UnsupportedError, match="at most 100,000 nodes"):
        from_proto(model, name="m")
    first = next(f for f in model.functions if f.name == "F0")
    first.node[0].attribute[1].g.node[0].op_type, first.node[0].attribute[1].g.node[0].domain = "F40", "f"
    with pytest.raises(ModelError, match="must not call itself"):
        from_proto(model, name="m")


def test_many_nodes_are_refused() -> None:
    model = one_node()
    names = ["x", *(f"v{n}" for n in range(100_000)), "y"]
    del model.graph.node[:]
    model.graph.node.extend(helper.make_node("Relu", [a], [b]) for a, b in pairwise(names))
    with pytest.raises(UnsupportedError, match="but it has 100,001"):
        from_proto(model, name="m")


def test_wide_nodes_and_deep_branches_are_refused() -> None:
    model = one_node()
    model.graph.node[0].input[:] = ["x"] * 5_000
    with pytest.raises(UnsupportedError, match="at most 4,096 inputs, but it has 5,000"):
        from_proto(model, name="m")
    model = one_node()
    for _ in range(9):
        inner = helper.make_graph(list(model.graph.node), "branch", [], list(model.graph.output))
        del model.graph.node[:]
        model.graph.node.append(helper.make_node("If", ["x"], ["y"], then_branch=inner, else_branch=inner))
    with pytest.raises(UnsupportedError, match="at most 8 levels of branches"):
        from_proto(model, name="m")


def loop(trips: int | None, ends: str) -> onnx.ModelProto:
    """A Loop that doubles its value; `ends` is the operator that makes the next condition of the last one."""
    model = one_node()
    value, flag = (helper.make_tensor_value_info(n, t, s) for n, t, s in (("v", 1, [1, 3, 8, 8]), ("on", 9, [])))
    body = helper.make_graph(
        [helper.make_node(ends, ["on"], ["next"]), helper.make_node("Add", ["v", "v"], ["w"])],
        "body",
        [helper.make_tensor_value_info("i", TensorProto.INT64, []), flag, value],
        [helper.make_tensor_value_info("next", 9, []), helper.make_tensor_value_info("w", 1, [1, 3, 8, 8])],
    )
    del model.graph.node[:]
    inputs = ["n" if trips is not None else "", "", "x"]
    model.graph.node.append(helper.make_node("Loop", inputs, ["y"], body=body))
    if trips is not None:
        model.graph.initializer.append(helper.make_tensor("n", TensorProto.INT64, [], [trips]))
    return model


def test_endless_loops_are_refused() -> None:
    for trips, said in ((10**12, "it has 1,000,000,000,000"), (65_537, "it has 65,537"), (None, "it has no end")):
        with pytest.raises(UnsupportedError, match=said) as caught:
            from_proto(loop(trips, "Identity"), name="m")
        assert caught.value.row == 6
    assert from_proto(loop(65_536, "Identity"), name="m").nodes[0].op == "Loop"
    # PyTorch writes the largest number where a condition ends the loop.
    assert from_proto(loop((1 << 63) - 1, "Not"), name="m").nodes[0].op == "Loop"


def counted(*nodes: onnx.NodeProto) -> onnx.ModelProto:
    """A Loop with as many trips as the value n that some nodes compute, from a million, the number 3 or the image x."""
    model = loop(1, "Identity")
    model.graph.initializer[0].name = "three"
    model.graph.initializer[0].int64_data[0] = 3
    model.graph.initializer.append(helper.make_tensor("million", TensorProto.INT64, [1], [10**6]))
    for index, node in enumerate(nodes):
        model.graph.node.insert(index, node)
    return model


def test_trips_that_are_computed_from_constants_and_sizes_are_limited(tmp_path: Path) -> None:
    node = helper.make_node
    sizes = [node("Shape", ["x"], ["s"]), node("ReduceProd", ["s"], ["p"], keepdims=0)]
    refused = {
        "it has 1,000,000,000,000": [node("Mul", ["million", "million"], ["n"])],
        "it has 192,000,000": [*sizes, node("Mul", ["p", "million"], ["n"])],
        "it has a number that is not known": [
            node("ConstantOfShape", ["million"], ["z"]),
            node("ReduceSum", ["z"], ["r"]),
            node("Cast", ["r"], ["n"], to=TensorProto.INT64),
        ],
    }
    for said, nodes in refused.items():
        model = counted(*nodes)
        with pytest.raises(UnsupportedError, match=said):
            from_proto(model, name="m")
        onnx.save(model, tmp_path / "m.onnx")
        with pytest.raises(UnsupportedError, match=said):
            preprocess(tmp_path / "m.onnx", cache=tmp_path)
    of_input = [node("ReduceMax", ["x"], ["m"], keepdims=0), node("Cast", ["m"], ["n"], to=TensorProto.INT64)]
    for nodes in ([*sizes, node("Mul", ["p", "three"], ["n"])], of_input):
        assert from_proto(counted(*nodes), name="m").nodes[-1].op == "Loop"


def test_trips_in_functions_and_in_other_loops_are_limited() -> None:
    model = loop(1000, "Identity")
    inner = model.graph.node[0]
    model.functions.append(helper.make_function("f", "F", ["n", "x"], ["y"], [inner], model.opset_import))
    model.opset_import.append(helper.make_opsetid("f", 1))
    model.graph.node[0].CopyFrom(helper.make_node("F", ["n", "x"], ["y"], domain="f"))
    assert from_proto(model, name="m")
    model.graph.initializer[0].int64_data[0] = 10**12
    with pytest.raises(UnsupportedError, match="it has 1,000,000,000,000"):
        from_proto(model, name="m")
    model = loop(1000, "Identity")
    body = model.graph.node[0].attribute[0].g
    deeper = helper.make_node("Loop", ["n", "", "v"], ["w"], body=loop(1, "Identity").graph.node[0].attribute[0].g)
    body.node[1].CopyFrom(deeper)
    with pytest.raises(UnsupportedError, match="it has 1,000 in each of 1,000"):
        from_proto(model, name="m")


def test_a_circle_in_the_condition_of_a_loop_is_found() -> None:
    model = loop(10**12, "Identity")
    body = model.graph.node[0].attribute[0].g
    body.node[0].input[0] = "other"
    body.node.insert(0, helper.make_node("Identity", ["next"], ["other"]))
    with pytest.raises(ModelError):
        from_proto(model, name="m")


@pytest.mark.parametrize("operands", [["", "scales"], ["", "", "sizes"]])
def test_resize_of_opset_11_and_12_without_a_region(operands: list[str]) -> None:
    for opset in (11, 12):
        model = one_node("Resize", mode="nearest")
        model.opset_import[0].version = opset
        model.graph.node[0].input.extend(operands)
        model.graph.initializer.append(helper.make_tensor("scales", TensorProto.FLOAT, [4], [1, 1, 2, 2]))
        model.graph.initializer.append(helper.make_tensor("sizes", TensorProto.INT64, [4], [1, 3, 16, 16]))
        assert from_proto(model, name="m").shape("y") == (1, 3, 16, 16)


def test_values_larger_than_memory_are_refused() -> None:
    model = one_node()
    del model.graph.node[:]
    names = ["x", *(f"v{n}" for n in range(40))]
    model.graph.node.extend(helper.make_node("Concat", [a, a], [b], axis=2) for a, b in pairwise(names))
    model.graph.node.append(helper.make_node("Shape", ["v39"], ["y"]))
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info("y", TensorProto.INT64, [4]))
    with pytest.raises(UnsupportedError, match="must have at most 268,435,456 values"):
        from_proto(model, name="m")


@pytest.mark.parametrize("opset", [6, 26])
def test_opsets_out_of_range_are_refused(opset: int) -> None:
    model = one_node()
    model.opset_import[0].version = opset
    with pytest.raises(UnsupportedError, match=f"from 7 to 25, not {opset}"):
        from_proto(model, name="m")


def test_scales_per_channel_need_a_newer_opset(rng: random.Random) -> None:
    m = OnnxMaker(rng, opset=11)
    m.output(m.conv(m.image(3, 4, 4), 4))
    with pytest.raises(ModelError, match="not in 11: export with opset_version=13 or later"):
        from_proto(m.model(), name="m")
    # A pass may have rewritten QOperator nodes so.
    assert from_proto(m.model(), name="m", origin=Origin(checked=True)).opset == 11


def test_unused_domains_are_ignored_and_used_ones_must_be_imported() -> None:
    model = one_node()
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 3))
    assert set(from_proto(model, name="m").opsets) == {"", "com.microsoft"}
    with pytest.raises(ModelError, match="domain 'acme' but no opset import for it: add"):
        from_proto(one_node(domain="acme"), name="m")


def test_unknown_operators_are_refused() -> None:
    with pytest.raises(ModelError, match="Wibble is not an operator of opset 17"):
        from_proto(one_node("Wibble"), name="m")


def _rename(model: onnx.ModelProto, node: int, old: str, new: str) -> None:
    for side in (model.graph.node[node].input, model.graph.node[node].output):
        for i, name in enumerate(side):
            side[i] = new if name == old else name


def test_duplicate_and_missing_names_are_refused() -> None:
    model = one_node()
    model.graph.node.append(helper.make_node("Relu", ["x"], ["y"], name="again"))
    with pytest.raises(ModelError, match="'again' produces 'y', which already exists"):
        from_proto(model, name="m")
    model = one_node()
    _rename(model, 0, "x", "z")
    with pytest.raises(ModelError, match="reads 'z'"):
        from_proto(model, name="m")
    model = one_node()
    model.graph.output.append(model.graph.output[0])
    with pytest.raises(ModelError, match="two outputs have the name 'y'"):
        from_proto(model, name="m")


def test_nodes_without_names_get_different_ones() -> None:
    model = one_node()
    _rename(model, 0, "y", "a")
    model.graph.node.append(helper.make_node("Relu", ["a"], ["y"], name="Relu(a)"))
    assert [n.name for n in from_proto(model, name="m").nodes] == ["Relu(a)", "Relu(a)#2"]


@pytest.mark.parametrize(
    ("start", "said"),
    [
        (b"PK\x03\x04\x14\x00", "zip archive.*torch.onnx.export"),
        (b"\x80\x02\x8a\x0al\xfc", "pickle.*torch.onnx.export"),
        (b"\x89HDF\r\n\x1a\n", "HDF5.*tf2onnx"),
        (b"\x1c\x00\x00\x00ORTM", "onnxruntime's own format"),
        (b'<?xml version="1.0"?>', "OpenVINO"),
        (b"\x1f\x8b\x08\x00\x00", "unpack it"),
        (b"7767517\n3 3\n", "ncnn"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "git lfs pull"),
        (b"\xff" * 40, "check that the file is complete"),
    ],
)
def test_files_of_other_formats_are_named_with_a_remedy(tmp_path, start, said):
    path = tmp_path / "model.onnx"
    path.write_bytes(start + b"\xff" * 30)
    with pytest.raises(FileFormatError, match=f"must be an ONNX model, but .*{said}"):
        load_model(path)
