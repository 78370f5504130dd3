"""Files of a fixed batch: compiled for one image where the images stay apart, and run once for each."""

from itertools import permutations
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from intloom.compiler.importer.batch import one_image
from intloom.compiler.reference import open_session
from intloom.session import Session

BATCH = 3


def model(nodes: list[onnx.NodeProto], constants: dict[str, np.ndarray], dtype: int = TensorProto.FLOAT):
    """A model of images of 8 channels and 6x6 pixels."""
    image = helper.make_tensor_value_info("image", dtype, [BATCH, 8, 6, 6])
    out = helper.make_tensor_value_info("out", dtype, None)
    tensors = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "batch", [image], [out], tensors)
    domains = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=domains, ir_version=8)


def quantized(rng: np.random.Generator) -> onnx.ModelProto:
    """A convolution, a pool and a fully connected layer behind a Reshape to [batch, -1]."""
    constants = {
        "s": np.float32(0.02), "z": np.uint8(120), "ws": np.float32(0.005), "wz": np.int8(0), "os": np.float32(0.5),
        "w": rng.integers(-127, 128, (16, 8, 3, 3)).astype(np.int8),
        "v": rng.integers(-127, 128, (16 * 9, 10)).astype(np.int8),
        "shape": np.array([BATCH, 16 * 9]),
    }  # fmt: skip
    nodes = [
        helper.make_node("DequantizeLinear", ["image", "s", "z"], ["x"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wf"]),
        helper.make_node("Conv", ["x", "wf"], ["y"], pads=[1] * 4),
        helper.make_node("QuantizeLinear", ["y", "os", "z"], ["yq"]),
        helper.make_node("DequantizeLinear", ["yq", "os", "z"], ["yf"]),
        helper.make_node("MaxPool", ["yf"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Reshape", ["p", "shape"], ["flat"]),
        helper.make_node("DequantizeLinear", ["v", "ws", "wz"], ["vf"]),
        helper.make_node("MatMul", ["flat", "vf"], ["g"]),
        helper.make_node("QuantizeLinear", ["g", "os", "z"], ["out"]),
    ]
    return model(nodes, constants, TensorProto.UINT8)


@pytest.mark.parametrize("typed", [False, True], ids=["plain", "with the types of all values"])
def test_a_session_runs_a_batch_image_by_image(tmp_path: Path, caplog: pytest.LogCaptureFixture, typed: bool) -> None:
    path = tmp_path / "batch.onnx"
    rng = np.random.default_rng(0)
    whole = quantized(rng)
    if typed:  # as onnxruntime stores an optimized model: with those of constants
        whole = onnx.shape_inference.infer_shapes(whole)
        whole.graph.value_info.extend(
            helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in whole.graph.initializer
        )
    onnx.save(whole, path)
    session = Session(path)
    assert "the batch size becomes 1" in caplog.text
    image = rng.integers(0, 256, (BATCH, 8, 6, 6), dtype=np.uint8)
    (found,) = session.run(None, {"image": image})
    (expected,) = open_session(path.read_bytes()).run(None, {"image": image})
    np.testing.assert_array_equal(found, expected)


ARG_MAX = [helper.make_node("ArgMax", ["image"], ["i"], axis=1), helper.make_node("Cast", ["i"], ["out"], to=1)]
QOPERATORS = [
    helper.make_node("QuantizeLinear", ["image", "s", "z"], ["q"]),
    helper.make_node("QLinearConcat", ["s", "z", *["q", "s", "z"] * 2], ["c"], axis=1, domain="com.microsoft"),
    helper.make_node("QLinearSoftmax", ["c", "s", "z", "s", "z"], ["p"], axis=-1, opset=17, domain="com.microsoft"),
    helper.make_node("Flatten", ["p"], ["f"]),
    helper.make_node("QGemm", ["f", "s", "z", "w", "s", "z", "", "s", "z"], ["g"], domain="com.microsoft"),
    helper.make_node("DequantizeLinear", ["g", "s", "z"], ["out"]),
]


@pytest.mark.parametrize(
    ("nodes", "constants"),
    [
        (ARG_MAX, {}),
        (QOPERATORS, {"s": np.float32(0.02), "z": np.uint8(99), "w": np.arange(1728, dtype=np.uint8).reshape(576, 3)}),
        ([helper.make_node("Softmax", ["image"], ["out"], axis=1)], {}),
        ([helper.make_node("Concat", ["image", "image"], ["out"], axis=-3)], {}),
        ([helper.make_node("Transpose", ["image"], ["out"], perm=[0, 2, 3, 1])], {}),
        ([helper.make_node("ReduceMean", ["image"], ["out"], axes=[2, 3])], {}),
        ([helper.make_node("Squeeze", ["p", "axes"], ["out"]),
          helper.make_node("GlobalAveragePool", ["image"], ["p"])][::-1], {"axes": np.array([2, 3])}),
        ([helper.make_node("Add", ["image", "c"], ["out"])], {"c": np.ones((1, 8, 1, 1), np.float32)}),
        ([helper.make_node("Add", ["image", "d"], ["out"]), helper.make_node("Neg", ["c"], ["d"])][::-1],
         {"c": np.ones((8, 1, 1), np.float32)}),
    ],
)  # fmt: skip
def test_images_that_stay_apart_become_one(nodes: list[onnx.NodeProto], constants: dict[str, np.ndarray]) -> None:
    """The results of the images one by one are those of the batch."""
    whole = model(nodes, constants)
    single = one_image(whole)
    assert single is not whole
    image = np.random.default_rng(1).integers(-4, 5, (BATCH, 8, 6, 6)).astype(np.float32)
    run = [onnxruntime.InferenceSession(m.SerializeToString()) for m in (whole, single)]
    (expected,) = run[0].run(None, {"image": image})
    found = np.concatenate([run[1].run(None, {"image": image[n : n + 1]})[0] for n in range(BATCH)])
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def along(op: str, axis: int) -> tuple[list[onnx.NodeProto], dict[str, np.ndarray]]:
    """The operator along an axis, in the form of opset 17, or where this has two, behind a node of the other."""
    axes, half = {"axes": np.array([axis])}, {"starts": np.array([0]), "ends": np.array([1])}
    cast = helper.make_node("Cast", ["i"], ["out"], to=TensorProto.FLOAT)
    pads = np.zeros((2, 4), np.int64)
    pads[int(op == "Pad at the end"), axis % 4] = 1
    node = helper.make_node
    forms = {
        "Concat": ([node("Concat", ["image", "image"], ["out"], axis=axis)], {}),
        "Gather": ([node("Gather", ["image", "axes"], ["out"], axis=axis)], {"axes": np.array([0])}),
        "ArgMax": ([node("ArgMax", ["image"], ["i"], axis=axis), cast], {}),
        "Slice": ([node("Slice", ["image", "starts", "ends", "axes"], ["out"])], axes | half),
        "Unsqueeze": ([node("Unsqueeze", ["image", "axes"], ["out"])], axes),
        "ReduceSum": ([node("ReduceSum", ["image", "axes"], ["out"])], axes),
        "Pad": ([node("Pad", ["image", "pads"], ["out"])], {"pads": pads.ravel()}),
        "Pad at the end": ([node("Pad", ["image", "pads"], ["out"])], {"pads": pads.ravel()}),
        **{o: ([node(o, ["image"], ["out"], axes=[axis])], {}) for o in ("ReduceMean", "ReduceMax", "ReduceMin")},
        **{o: ([node(o, ["image"], ["out"], axis=axis)], {}) for o in ("Softmax", "LogSoftmax")},
    }
    return forms[op]


ALONG = ("Concat", "Gather", "ArgMax", "Slice", "Unsqueeze", "ReduceSum", "Pad", "Pad at the end", "ReduceMean",
         "ReduceMax", "ReduceMin", "Softmax", "LogSoftmax")  # fmt: skip


@pytest.mark.parametrize("axis", [-4, -3, -2, -1, 0, 1, 2, 3])
@pytest.mark.parametrize("op", ALONG)
def test_images_meet_only_along_the_first_axis(op: str, axis: int) -> None:
    rank = 5 if op == "Unsqueeze" else 4
    whole = model(*along(op, axis))
    assert (one_image(whole) is whole) == (axis % rank == 0)
    if axis % rank:
        test_images_that_stay_apart_become_one(*along(op, axis))


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_a_transposition_that_moves_the_batch_stays(order: tuple[int, ...]) -> None:
    whole = model([helper.make_node("Transpose", ["image"], ["out"], perm=order)], {})
    assert (one_image(whole) is whole) == (order[0] != 0)


@pytest.mark.parametrize(
    ("nodes", "constants"),
    [
        ([helper.make_node("Softmax", ["image"], ["out"], axis=0)], {}),
        ([helper.make_node("Softmax", ["image"], ["out"], axis=-4)], {}),
        ([helper.make_node("Concat", ["image", "image"], ["out"], axis=0)], {}),
        ([helper.make_node("Gather", ["image", "i"], ["out"], axis=0)], {"i": np.array([2, 1, 0])}),
        ([helper.make_node("Transpose", ["image"], ["out"], perm=[1, 0, 2, 3])], {}),
        ([helper.make_node("ReduceMean", ["image"], ["out"])], {}),
        ([helper.make_node("Reshape", ["image", "s"], ["out"])], {"s": np.array([8, BATCH, 36])}),
        ([helper.make_node("Reshape", ["image", "s"], ["out"])], {"s": np.array([-1])}),
        ([helper.make_node("Add", ["image", "c"], ["out"])], {"c": np.ones((BATCH, 8, 1, 1), np.float32)}),
        ([helper.make_node("DynamicQuantizeLinear", ["image"], ["out", "s", "z"])], {}),
        ([helper.make_node("CumSum", ["image", "a"], ["out"])], {"a": np.array(0)}),
        ([helper.make_node("Slice", ["image", "a", "b", "a"], ["out"])], {"a": np.array([0]), "b": np.array([1])}),
        ([helper.make_node("Pad", ["image", "p"], ["out"])], {"p": np.array([1, 0, 0, 0, 0, 0, 0, 0])}),
        ([helper.make_node("Pad", ["image", "p"], ["out"])], {"p": np.array([1, 0, 0, 0, -1, 0, 0, 0])}),
        ([helper.make_node("Pad", ["image", "p"], ["out"])], {"p": np.array([-1, 0, 0, 0, 1, 0, 0, 0])}),
        ([helper.make_node("Mine", ["image"], ["out"], domain="my")], {}),
    ],
)
def test_a_batch_whose_images_meet_stays(nodes: list[onnx.NodeProto], constants: dict[str, np.ndarray]) -> None:
    whole = model(nodes, constants)
    assert one_image(whole) is whole
