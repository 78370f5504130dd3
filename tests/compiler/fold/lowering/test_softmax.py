"""Softmax over two channels is exact on the accelerator; over more channels it runs on the host."""

import random

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from intloom.compiler.fold.target import Target
from intloom.compiler.frontend import FoldedModel, fold_model
from intloom.compiler.importer import from_proto
from tests.support.lowered import compared, kinds
from tests.support.onnx_maker import OnnxMaker, Value
from tests.support.parity import run_folded, run_onnxruntime

SCALES = [0.3, 0.08, 0.01]


def entry(m: OnnxMaker, shape: tuple[int, ...], scale: float, zero: int = 0) -> Value:
    """A float input and its pair."""
    m.inputs.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, shape))
    return m.pair("x", shape, scale, zero)


def softmax(m: OnnxMaker, x: Value, op: str = "Softmax", scale: float = 1 / 256, **fields: int) -> onnx.ModelProto:
    """The model whose output is this value."""
    zero = {"Softmax": 0, "LogSoftmax": 255}[op] - (128 if m.dtype == "int8" else 0)
    (soft,) = m.node(op, [x.name], **fields)
    m.output(m.pair(soft, x.shape, scale, zero))
    return m.model()


def fold(model: onnx.ModelProto) -> FoldedModel:
    return fold_model(from_proto(model, name="m"))


def reason(folded: FoldedModel) -> tuple[Target, str]:
    """Target of the Softmax, and the reason."""
    (found,) = (v for v in folded.assignments if v.op.endswith("Softmax"))
    return found.target, found.reason


@pytest.mark.parametrize("scale", SCALES)
def test_two_channels_on_every_level(scale: float, rng: random.Random, seed: int) -> None:
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 9, 7), 2)
    softmax(m, m.unary("LeakyRelu", Value(x.name, x.shape, scale), alpha=0.5), axis=1)
    found = compared(m, seed)
    assert kinds(found)[-3:] == ["Conv", "Conv", "Add"]
    assert reason(found.folded) == (Target.ARRAY, "proved over 65,536 pairs")


@pytest.mark.parametrize(("opset", "fields"), [(11, {}), (12, {"axis": -3}), (17, {"axis": 1})])
def test_the_axis_of_old_opsets_is_that_of_channels(opset: int, fields: dict[str, int], rng: random.Random) -> None:
    m = OnnxMaker(rng, opset=opset)
    x = m.unary("LeakyRelu", entry(m, (1, 2, 1, 1), 0.1), alpha=0.5)
    assert reason(fold(softmax(m, x, **fields)))[0] is Target.ARRAY


@pytest.mark.parametrize("shape", [(1, 2, 256, 256), (1, 2, 65_536)])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize(("op", "step"), [("Softmax", 1 / 256), ("LogSoftmax", 1 / 8)])
def test_every_pair(op: str, step: float, dtype: str, scale: float, shape: tuple[int, ...], rng: random.Random) -> None:
    m = OnnxMaker(rng, dtype=dtype)
    low = 0 if dtype == "uint8" else -128
    model = softmax(m, entry(m, shape, scale, low), op, step, axis=1)
    folded = fold(model)
    assert reason(folded)[0] is Target.ARRAY
    codes = np.stack(np.meshgrid(np.arange(256), np.arange(256)))
    feeds = {"x": (codes * np.float32(scale)).astype(np.float32).reshape(shape)}
    (name,) = (o.name for o in model.graph.output)
    expected = run_onnxruntime(model.SerializeToString(), feeds, [name])[name]
    np.testing.assert_array_equal(run_folded(folded, feeds)[name], expected)
    assert len(np.unique(expected)) > 5


@pytest.mark.parametrize("scale", SCALES)
def test_a_vector_of_two(scale: float, rng: random.Random) -> None:
    m = OnnxMaker(rng)
    model = softmax(m, entry(m, (1, 2), scale))
    folded = fold(model)
    assert reason(folded)[0] is Target.ARRAY
    (name,) = (o.name for o in model.graph.output)
    for pair in ((0, 0), (255, 0), (3, 250), (128, 127), (90, 100)):
        feeds = {"x": np.array([pair], np.float32) * np.float32(scale)}
        expected = run_onnxruntime(model.SerializeToString(), feeds, [name])[name]
        np.testing.assert_array_equal(run_folded(folded, feeds)[name], expected)


@pytest.mark.parametrize(
    ("shape", "opset", "fields"),
    [
        ((1, 3, 4, 4), 17, {"axis": 1}),
        ((1, 2, 4, 4), 17, {"axis": 2}),
        ((1, 2, 4, 2), 17, {}),
        ((1, 2, 4, 4), 11, {"axis": 1}),
    ],
)
def test_what_divides_stays_with_the_host(
    shape: tuple[int, ...], opset: int, fields: dict[str, int], rng: random.Random
) -> None:
    """More than two values, other axes, and the Softmax of old opsets over all axes from its own on."""
    m = OnnxMaker(rng, opset=opset)
    x = m.unary("LeakyRelu", entry(m, shape, 0.1), alpha=0.5)
    target, why = reason(fold(softmax(m, x, **fields)))
    assert target is Target.HOST
    assert "no division" in why
