"""Data movement of 8-bit values without a pair around it, in forms that the corpus lacks."""

import random

import numpy as np
from onnx import TensorProto, helper

from intloom.compiler.fold.target import Target
from tests.support.onnx_maker import OnnxMaker, Value
from tests.support.parity import Parity, assert_equal

HOST = (Target.HOST, Target.UNSUPPORTED)


def stored(m: OnnxMaker) -> tuple[str, list[str]]:
    """The quantized value that the last DequantizeLinear reads, with its scale and zero point."""
    name, *parameters = m.nodes[-1].input
    return name, parameters


def part(m: OnnxMaker, value: str, first: int, last: int) -> str:
    return m.node("Slice", [value, *(m.constant(np.array([n])) for n in (first, last, 1))])[0]


def on_host(found: Parity) -> list[str]:
    return [v.op for v in found.folded.assignments if v.target in HOST]


def test_a_stored_concat_of_different_scales_stays_with_the_host(seed: int) -> None:
    """The DequantizeLinear after it gives a meaning to its bytes, which differs from theirs before it."""
    m = OnnxMaker(random.Random(seed))
    x = m.image(3, 8, 8)
    m.conv(x, 8)
    one, _ = stored(m)
    y = m.conv(x, 8)
    two, parameters = stored(m)
    (joined,) = m.node("Concat", [one, two], axis=1)
    (real,) = m.node("DequantizeLinear", [joined, *parameters])
    m.output(m.conv(Value(real, (1, 16, 8, 8), y.scale), 8))
    assert "Concat" in on_host(assert_equal(m.model(), seed))


def test_stored_movement_of_an_input(seed: int) -> None:
    """The parameters of an 8-bit input are those of the DequantizeLinear after the movement."""
    m = OnnxMaker(random.Random(seed))
    m.inputs.append(helper.make_tensor_value_info("bytes", TensorProto.UINT8, (1, 8, 6, 6)))
    names = [m.constant(np.float32(0.02)), m.constant(np.uint8(99))]
    (real,) = m.node("DequantizeLinear", [part(m, "bytes", 2, 6), *names])
    m.output(m.conv(Value(real, (1, 4, 6, 6), 0.02), 8))
    found = assert_equal(m.model(), seed)
    assert not on_host(found)
