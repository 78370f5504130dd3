"""Softmax on the vector unit: equal to its definition in integer operations, and within 1 of onnxruntime's kernel."""

import random

import numpy as np
import onnx
import pytest

from intloom.compiler.fold.target import Target
from intloom.flow.checking import reference_model
from intloom.hw.spec.params import preset
from tests.compiler.fold.lowering.test_matmul import attention
from tests.compiler.fold.lowering.test_softmax import entry
from tests.support.lowered import WITH_SOFTMAX, compared, kinds
from tests.support.onnx_maker import TYPES, OnnxMaker, Value
from tests.support.parity import folded, random_feeds, run_folded, run_onnxruntime

BASE = preset("base").replace(vector_softmax=True)
RESULT = [1 / 256, float(np.float32(1 / 255))]


def softmax(m: OnnxMaker, x: Value, axis: int, scale: float, zero: int = 0) -> Value:
    (name,) = m.node("Softmax", [x.name], axis=axis)
    return m.pair(name, x.shape, scale, zero - (128 if m.dtype == "int8" else 0))


def qlinear_softmax(m: OnnxMaker, x: Value, axis: int, scale: float) -> Value:
    """The operator between quantized values."""
    (source,) = (n for n in m.nodes if n.output[0] == x.name)
    kind = TYPES[m.dtype]
    result = [m.constant(np.float32(scale)), m.constant(kind[0](kind[2]))]
    inputs = [*source.input, *result]
    (made,) = m.node("QLinearSoftmax", inputs, axis=axis, opset=13, domain="com.microsoft")
    return Value(m.node("DequantizeLinear", [made, *result])[0], x.shape, scale)


def image(m: OnnxMaker, rng: random.Random, channels: int) -> Value:
    """A convolution's result, with another scale: exponentials fall slowly or fast."""
    x = m.conv(m.image(3, rng.randint(1, 6), rng.randint(1, 6)), channels, kernel=1)
    return m.unary("LeakyRelu", Value(x.name, x.shape, rng.choice((0.3, 0.05, 0.01))), alpha=0.5)


@pytest.mark.parametrize("params", [WITH_SOFTMAX, BASE], ids=["small", "base"])
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_over_channels_on_every_level(params, dtype: str, rng: random.Random, seed: int) -> None:
    m = OnnxMaker(rng, dtype=dtype)
    x = image(m, rng, rng.choice((3, 8, 16, 17, rng.randint(3, 90))))
    m.output(softmax(m, x, rng.choice((1, -3)), rng.choice(RESULT), rng.choice((0, 0, 9))))
    found = compared(m, seed, params)
    assert kinds(found)[-1] == "Softmax"


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_qoperator_is_compared_with_the_definition(dtype: str, rng: random.Random, seed: int) -> None:
    """Like a Softmax in QDQ form: onnxruntime's kernel for the operator adds in float."""
    m = OnnxMaker(rng, dtype=dtype)
    x = image(m, rng, rng.randint(3, 90))
    m.output(qlinear_softmax(m, x, rng.choice((1, -3)), rng.choice(RESULT)))
    found = compared(m, seed, WITH_SOFTMAX)
    assert kinds(found)[-1] == "Softmax"
    form, _ = reference_model(found.folded, m.model())
    assert {"Gather", "ReduceSum"} < {n.op_type for n in form.graph.node}
    assert "QLinearSoftmax" not in {n.op_type for n in form.graph.node}


@pytest.mark.parametrize("params", [WITH_SOFTMAX, BASE], ids=["small", "base"])
def test_attention_on_every_level(params, rng: random.Random, seed: int) -> None:
    m = OnnxMaker(rng)
    side = rng.choice([(1, 4), (3, 3), (4, 5), (6, 6)])
    heads = rng.choice([1, 2, 3])

    def weights(scores: Value) -> Value:
        return softmax(m, scores, -1, rng.choice(RESULT))

    m.output(attention(m, heads, rng.choice([4, 8]), rng.choice([8, 16]), side, weigh=weights))
    found = compared(m, seed, params)
    assert kinds(found).count("Softmax") == heads
    assert not [v for v in found.folded.assignments if v.target == Target.HOST]


@pytest.mark.parametrize("scale", RESULT)
@pytest.mark.parametrize("step", [0.3, 0.05, 0.01])
def test_within_one_of_the_kernel(scale: float, step: float, rng: random.Random, seed: int) -> None:
    m = OnnxMaker(rng)
    count = rng.choice((3, 16, 80, 400, 1000))
    x = m.image(3, 8, 8)
    x = m.conv(x, count, kernel=1)
    x = m.unary("LeakyRelu", Value(x.name, x.shape, step), alpha=0.5)
    m.output(softmax(m, x, 1, scale))
    model: onnx.ModelProto = m.model()
    feeds = random_feeds(model, seed)
    (name,) = (o.name for o in model.graph.output)
    theirs = run_onnxruntime(model.SerializeToString(), feeds, [name])[name]
    ours = run_folded(folded(model, softmax=True), feeds)[name]
    gap = np.abs(np.rint((theirs - ours) / np.float32(scale)))
    assert gap.max() <= 1
    assert np.count_nonzero(gap) <= 1 + gap.size // 1000


@pytest.mark.parametrize(
    ("shape", "axis", "opset", "scale", "why"),
    [
        ((1, 5, 4, 4), 2, 17, 1 / 256, "transpose"),
        ((1, 5, 4, 4), 1, 11, 1 / 256, "opset"),
        ((1, 5, 4, 4), 1, 17, 1 / 300, "scale"),
    ],
)
def test_what_the_instruction_cannot_express(
    shape: tuple[int, ...], axis: int, opset: int, scale: float, why: str, rng: random.Random
) -> None:
    m = OnnxMaker(rng, opset=opset)
    m.output(softmax(m, m.unary("LeakyRelu", entry(m, shape, 0.1), alpha=0.5), axis, scale))
    (found,) = (v for v in folded(m.model(), softmax=True).assignments if v.op == "Softmax")
    assert found.target is Target.HOST
    assert why in found.reason + found.remedy
