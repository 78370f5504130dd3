"""Notation of the corpus: short calls for constants, parameters and common parts of networks."""

import random
import zlib
from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.support.onnx_maker import OnnxMaker, Value

Builder = Callable[[OnnxMaker], onnx.ModelProto]
MS = {"domain": "com.microsoft"}


def maker(name: str, dtype: str = "uint8", opset: int = 17) -> OnnxMaker:
    """A maker whose random numbers depend on the name only."""
    return OnnxMaker(random.Random(zlib.crc32(name.encode())), dtype=dtype, opset=opset)


def parameters(m: OnnxMaker, scale: float, zero: int, kind: type = np.uint8) -> list[str]:
    """Scale and zero point."""
    return [m.constant(np.float32(scale)), m.constant(kind(zero))]


def given(m: OnnxMaker, name: str, shape: tuple[object, ...], kind: int = TensorProto.FLOAT) -> str:
    """An input of the model."""
    m.inputs.append(helper.make_tensor_value_info(name, kind, shape))
    return name


def stored(m: OnnxMaker, shape: tuple[int, ...], kind: type = np.int8) -> str:
    """A constant of random integers."""
    info = np.iinfo(kind)
    noise = np.random.default_rng(m.rng.getrandbits(32))
    return m.constant(noise.integers(info.min, info.max, shape, endpoint=True).astype(kind))


def scales(m: OnnxMaker, count: int) -> str:
    """A vector of scales of weights."""
    noise = np.random.default_rng(m.rng.getrandbits(32))
    return m.constant(noise.uniform(0.002, 0.01, count).astype(np.float32))


def network(m: OnnxMaker) -> Value:
    """Convolutions, an addition and a Concat, as in most networks."""
    x = m.conv(m.image(3, 8, 8), 8, activation="Relu")
    y = m.binary("Add", x, m.conv(x, 8))
    return m.conv(m.concat([x, y]), 4, 1)


def finished(m: OnnxMaker, *values: Value) -> onnx.ModelProto:
    """The model with these outputs."""
    m.output(*values)
    return m.opened()
