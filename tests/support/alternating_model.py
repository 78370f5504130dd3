"""Random models in which operators of the host alternate with regions of the accelerator."""

import random

import numpy as np
import onnx

from tests.support.onnx_maker import TYPES, OnnxMaker, Value

_LEAST_CHANNELS = 16
"""With fewer, a convolution after a host part multiplies too little to come back to the accelerator."""


def alternating_model(seed: int) -> onnx.ModelProto:
    """The model of a seed: convolutions, each followed by an operator of the host, with branches between them."""
    rng = random.Random(seed)
    m = OnnxMaker(rng, dtype=rng.choice(list(TYPES)), opset=rng.choice([13, 17, 19]))
    live = [_conv(m, m.image(3, rng.randint(4, 9), rng.randint(4, 9)))]
    for _ in range(rng.randint(1, 4)):
        live.append(_conv(m, _host(m, rng.choice(live[-2:]), live)))
        if rng.random() < 0.3:
            live.append(_between(m, live))
    # The last values of all branches are outputs, so that the reference computes every value.
    read = {name for node in m.nodes for name in node.input}
    m.output(*(v for v in live if v.name not in read or rng.random() < 0.3))
    return m.model()


def _conv(m: OnnxMaker, x: Value) -> Value:
    return m.conv(x, m.rng.choice([_LEAST_CHANNELS, 20, 32]), 3, activation=m.rng.choice([None, "Relu"]))


def _between(m: OnnxMaker, live: list[Value]) -> Value:
    """An operator of the accelerator that reads values of different regions."""
    x = live[-1]
    alike = [v for v in live[:-1] if v.shape == x.shape]
    beside = [v for v in live[:-1] if v.shape[2:] == x.shape[2:]]
    if alike and m.rng.random() < 0.5:
        return m.binary("Add", x, m.rng.choice(alike))
    return m.concat([x, m.rng.choice(beside)]) if beside else m.maxpool(x)


def _host(m: OnnxMaker, x: Value, live: list[Value]) -> Value:
    """A value that the host computes, quantized."""
    kind = m.rng.choice([_softmax, _normalized, _turned, _linear, _accumulated, _stored, _branches])
    return kind(m, x, live)


def _softmax(m: OnnxMaker, x: Value, _: list[Value]) -> Value:
    (value,) = m.node("Softmax", [x.name], axis=m.rng.choice([1, 2, 3]))
    return m.pair(value, x.shape, 1 / 64)


def _normalized(m: OnnxMaker, x: Value, _: list[Value]) -> Value:
    factors = [m.constant(np.full(x.shape[1], v, np.float32)) for v in (m.rng.uniform(0.5, 2), 0.3)]
    (value,) = m.node("InstanceNormalization", [x.name, *factors])
    return m.pair(value, x.shape, 0.03)


def _turned(m: OnnxMaker, x: Value, _: list[Value]) -> Value:
    """Rows and columns exchanged."""
    shape = (*x.shape[:2], x.shape[3], x.shape[2])
    (value,) = m.node("Transpose", [x.name], perm=[0, 1, 3, 2])
    return m.pair(value, shape, x.scale * m.rng.choice([1, 1.3]))


def _linear(m: OnnxMaker, x: Value, _: list[Value]) -> Value:
    scales = m.constant(np.array([1, 1, 2, 2], np.float32))
    (value,) = m.node("Resize", [x.name, "", scales], mode="linear", coordinate_transformation_mode="half_pixel")
    (value,) = m.node("MaxPool", [value], kernel_shape=[2, 2], strides=[2, 2])
    return m.pair(value, x.shape, x.scale)


def _accumulated(m: OnnxMaker, x: Value, _: list[Value]) -> Value:
    """Accumulated sums."""
    (value,) = m.node("CumSum", [x.name, m.constant(np.array(m.rng.choice([1, 2, 3])))])
    return m.pair(value, x.shape, x.scale * 4)


def _stored(m: OnnxMaker, x: Value, _: list[Value]) -> Value:
    """A Concat of stored values of the host and of the accelerator, with the parameters of the latter."""
    kind, scale = TYPES[m.dtype][0], m.constant(np.float32(x.scale))
    parameters = [scale, m.constant(kind(m.zero_point()))]
    (near,) = m.node("QuantizeLinear", [x.name, *parameters])
    (value,) = m.node("LpNormalization", [x.name], axis=m.rng.choice([1, 2, 3]))
    (far,) = m.node("QuantizeLinear", [value, *parameters])
    parts = [near, far] if m.rng.random() < 0.5 else [far, near]
    (joined,) = m.node("Concat", parts, axis=1)
    (value,) = m.node("DequantizeLinear", [joined, *parameters])
    return Value(value, (1, 2 * x.shape[1], *x.shape[2:]), x.scale)


def _branches(m: OnnxMaker, x: Value, live: list[Value]) -> Value:
    """A Mul of two values that the host normalizes, one of them from an earlier region."""
    other = m.rng.choice([v for v in live if v.shape == x.shape])
    (a,) = m.node("Softmax", [x.name], axis=1)
    (b,) = m.node("LpNormalization", [other.name], axis=1)
    (value,) = m.node("Mul", [a, b])
    return m.pair(value, x.shape, 1 / 128)
