"""Classifier tails: averages, movement of their results, and products, in the forms that exporters write.

What compiles and runs also passes the comparison with onnxruntime.
"""

import random

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.support.mutant_outcome import outcome
from tests.support.onnx_maker import TYPES, OnnxMaker, Value

MS = {"domain": "com.microsoft"}


def average(m: OnnxMaker, x: Value) -> tuple[str, tuple[int, ...]]:
    """A random average; gives its float value and its shape."""
    rng, (_, channels, height, width) = m.rng, x.shape
    kind = rng.randrange(4)
    if kind == 0:
        return m.node("GlobalAveragePool", [x.name])[0], (1, channels, 1, 1)
    if kind == 1:
        kernel = [height, width] if rng.random() < 0.5 else [2, 3]
        sizes = tuple(s - k + 1 for s, k in zip((height, width), kernel, strict=True))
        return m.node("AveragePool", [x.name], kernel_shape=kernel)[0], (1, channels, *sizes)
    keep, axes = rng.randint(0, 1), rng.choice([[2, 3], [-1, -2], [3, 2]])
    shape = (1, channels, 1, 1) if keep else (1, channels)
    if m.opset >= 18:
        return m.node("ReduceMean", [x.name, m.constant(np.array(axes))], keepdims=keep)[0], shape
    return m.node("ReduceMean", [x.name], axes=axes, keepdims=keep)[0], shape


def moved(m: OnnxMaker, value: str, shape: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
    """A random movement of the values of one image."""
    size = int(np.prod(shape))
    kind = m.rng.choice(["Flatten", "Reshape", "Reshape", "Squeeze", "Image", "None"])
    if kind == "Flatten" and len(shape) == 4:
        return m.node("Flatten", [value], axis=1)[0], (1, size)
    if kind == "Squeeze" and shape[2:] == (1, 1):
        return m.node("Squeeze", [value, m.constant(np.array([2, 3]))])[0], shape[:2]
    if kind == "Image":
        return m.node("Reshape", [value, m.constant(np.array([1, size, 1, 1]))])[0], (1, size, 1, 1)
    if kind == "Reshape":
        wanted = m.rng.choice([[1, -1], [1, size], [-1, size]])
        return m.node("Reshape", [value, m.constant(np.array(wanted))])[0], (1, size)
    return value, shape


def qdq_tail(seed: int) -> onnx.ModelProto:
    rng = random.Random(seed)
    m = OnnxMaker(rng, dtype=rng.choice(list(TYPES)), opset=rng.choice([13, 17, 18, 21]))
    x = m.conv(m.image(3, rng.randint(4, 9), rng.randint(4, 9)), rng.choice([1, 5, 16]))
    value, shape = average(m, x)
    if rng.random() < 0.5:
        value = m.node(rng.choice(["Relu", "Sigmoid"]), [value])[0]
    if rng.random() < 0.5:
        value = m.pair(value, shape, x.scale / 2).name
    for _ in range(rng.randint(0, 2)):
        value, shape = moved(m, value, shape)
    last = m.pair(value, shape, x.scale / 2)
    if len(shape) == 2:
        weight, _ = m.weights((shape[1], 7), 1)
        last = m.pair(m.node("Gemm", [last.name, weight])[0], (1, 7), last.scale * 3)
    m.output(last)
    return m.model()


def contributed_tail(seed: int) -> onnx.ModelProto:
    """Operators of com.microsoft, whose shapes only onnxruntime knows, before and after averages."""
    rng = random.Random(seed)
    m = OnnxMaker(rng)
    kind = TYPES[m.dtype][0]

    def parameters() -> list[str]:
        return [m.constant(np.float32(rng.uniform(0.01, 0.1))), m.constant(kind(rng.randint(0, 255)))]

    channels, height, width = rng.choice([1, 4, 16]), rng.randint(4, 9), rng.randint(4, 9)
    m.inputs.append(helper.make_tensor_value_info("image", TensorProto.FLOAT, (1, channels, height, width)))
    p = parameters()
    (value,) = m.node("QuantizeLinear", ["image", *p])
    for op in rng.sample(["QLinearAdd", "QLinearMul", "QLinearSigmoid", "QLinearConcat", "QLinearLeakyRelu"], 3):
        q = parameters()
        inputs = [value, *p, *q]
        if op in ("QLinearAdd", "QLinearMul"):
            inputs = [value, *p, value, *p, *q]
        if op == "QLinearConcat":
            channels *= 2
            inputs = [*q, value, *p, value, *p]
        attributes = {"QLinearConcat": {"axis": 1}, "QLinearLeakyRelu": {"alpha": 0.1}}.get(op, {})
        (value,), p = m.node(op, inputs, **attributes, **MS), q
    if rng.random() < 0.5:
        (value,) = m.node("Slice", [value, *(m.constant(np.array([n])) for n in (0, 2, 2))])
    q = parameters()
    if rng.random() < 0.5:
        (value,) = m.node("QLinearAveragePool", [value, *p, *q], kernel_shape=[2, 2], strides=[2, 2], **MS)
        p, q = q, parameters()
    if rng.random() < 0.5:
        (value,) = m.node("DequantizeLinear", [value, *p])
        (value,) = m.node("ReduceMean", [value], axes=[2, 3], keepdims=1)
        (value,) = m.node("QuantizeLinear", [value, *q])
    else:
        (value,) = m.node("QLinearGlobalAveragePool", [value, *p, *q], **MS)
    p, q = q, parameters()
    if rng.random() < 0.5:
        (value,) = m.node("Reshape", [value, m.constant(np.array([1, -1]))])
        noise = np.random.default_rng(seed)
        weights = noise.integers(-128, 127, (channels, 7), np.int8)
        w = [m.constant(weights), m.constant(np.float32(0.01)), m.constant(np.int8(0))]
        inputs = [value, *p, *w, m.constant(np.arange(7, dtype=np.int32)), *q]
        (value,), p = m.node("QGemm", inputs, **MS), q
    m.outputs += m.node("DequantizeLinear", [value, *p])
    return m.opened()


@pytest.mark.parametrize("count", [40, pytest.param(500, marks=pytest.mark.nightly)])
def test_tails_that_run_pass_the_comparison(count: int, seed: int) -> None:
    for number in range(seed, seed + count):
        for model in (qdq_tail(number), contributed_tail(number)):
            found = outcome(model, number)
            assert found.kind in ("equal", "refused"), found
            assert "internal" not in found.text
