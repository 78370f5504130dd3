"""Random small quantized models: branches, residuals, concatenations, several outputs."""

import random

import numpy as np
import onnx

from tests.support.onnx_maker import OnnxMaker, Value

_UNARY = ("Sigmoid", "Tanh", "HardSwish", "LeakyRelu", "Relu", "Elu", "HardSigmoid", "Abs")
_ACTIVATIONS = (None, None, "Relu")


def random_model(seed: int, dtype: str = "uint8") -> onnx.ModelProto:
    """The model of a seed."""
    rng = random.Random(seed)
    m = OnnxMaker(rng, dtype=dtype)
    size = rng.randint(4, 14)
    live = [m.image(rng.choice([1, 3, 4, 8]), size, rng.randint(4, 14))]
    for _ in range(rng.randint(1, 7)):
        live.append(_grow(m, live))
    outputs = rng.sample(live[1:], min(len(live) - 1, rng.randint(1, 3)))
    m.output(*{v.name: v for v in outputs if _is_quantized(m, v)}.values(), m.conv(live[-1], 4))
    return m.model()


def _is_quantized(m: OnnxMaker, value: Value) -> bool:
    """The value comes straight from a DequantizeLinear, so that its integers can be compared."""
    return any(value.name in n.output and n.op_type == "DequantizeLinear" for n in m.nodes)


def _grow(m: OnnxMaker, live: list[Value]) -> Value:
    rng = m.rng
    x = rng.choice(live)
    alike = [v for v in live if v.shape == x.shape and v is not x]
    beside = [v for v in live if v.shape[2:] == x.shape[2:] and v is not x]
    kind = rng.randrange(14)
    if kind == 0 and alike:
        return m.binary(rng.choice(["Add", "Add", "Sub"]), x, rng.choice(alike))
    if kind == 1 and beside:
        return m.concat([x, *rng.sample(beside, min(len(beside), rng.randint(1, 2)))])
    if kind == 2 and x.shape[1] > 1:
        return rng.choice(m.split(x))
    return _grow_one(m, x, kind)


def _grow_one(m: OnnxMaker, x: Value, kind: int) -> Value:
    """An operator of one tensor."""
    rng, small = m.rng, x.shape[2] < 16
    if kind == 3:
        return m.maxpool(x, rng.choice([3, 5]), rng.choice([1, 2]))
    if kind == 4 and small:
        return m.resize(x, rng.choice([2, 3]))
    if kind == 5:
        return m.unary(rng.choice(_UNARY), x)
    if kind == 6:
        return m.silu(x)
    if kind == 7 and x.shape[1] > 1:
        return m.conv(x, x.shape[1], 3, group=x.shape[1], activation=rng.choice(_ACTIVATIONS))
    if kind == 11:
        return _two_classes(m, x)
    others = {8: _padded, 9: _picked, 10: _scaled}
    if kind in others and small and min(x.shape[2:]) > 3:
        return others[kind](m, x)
    return m.conv(
        x, rng.choice([1, 5, 8, 16]), rng.choice([1, 3]), rng.choice([1, 1, 2]), activation=rng.choice(_ACTIVATIONS)
    )


def _two_classes(m: OnnxMaker, x: Value) -> Value:
    """A Softmax over two channels."""
    scores = m.conv(x, 2, 1)
    return m.pair(m.node("Softmax", [scores.name], axis=1)[0], scores.shape, 1 / 256, 0 if m.dtype == "uint8" else -128)


def _padded(m: OnnxMaker, x: Value) -> Value:
    """A border of a constant."""
    borders = [m.rng.randint(0, 2) for _ in range(4)]
    top, left, bottom, right = borders
    inputs = [x.name, m.constant(np.array([0, 0, top, left, 0, 0, bottom, right]))]
    inputs.append(m.constant(np.float32(m.rng.choice([0.0, 0.3]))))
    shape = (*x.shape[:2], x.shape[2] + top + bottom, x.shape[3] + left + right)
    return m.pair(m.node("Pad", inputs)[0], shape, x.scale)


def _picked(m: OnnxMaker, x: Value) -> Value:
    """Some rows and columns."""
    steps = [m.rng.randint(1, 2) for _ in range(2)]
    starts = [m.rng.randint(0, 2) for _ in range(2)]
    arrays = (starts, list(x.shape[2:]), [2, 3], steps)
    (value,) = m.node("Slice", [x.name, *(m.constant(np.array(a)) for a in arrays)])
    shape = (*x.shape[:2], *(len(range(a, n, s)) for a, n, s in zip(starts, x.shape[2:], steps, strict=True)))
    return m.pair(value, shape, x.scale)


def _scaled(m: OnnxMaker, x: Value) -> Value:
    """A constant for each channel."""
    noise = np.random.default_rng(m.rng.getrandbits(32))
    factors = noise.uniform(0.3, 1.7, (1, x.shape[1], 1, 1)).astype(np.float32)
    (value,) = m.node("Mul", [x.name, m.constant(factors)])
    return m.pair(value, x.shape, float(np.float32(x.scale * m.rng.uniform(0.7, 1.7))))
