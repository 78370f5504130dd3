"""Models whose unrounded results have readers beside the QuantizeLinear: their integer form equals every byte.

onnxruntime computes an operator in float if its result has several readers, and rounds near ties differently then.
"""

import random

import numpy as np
import onnx
import pytest

import intloom
from tests.support.mutant_outcome import feeds_of
from tests.support.onnx_maker import OnnxMaker, Value
from tests.support.parity import assert_equal

SIZE = (12, 12)
READERS = ("output", "host", "second QuantizeLinear")
ZEROS = (("uint8", 0), ("uint8", 17), ("int8", -128), ("int8", 3))


def sums(m: OnnxMaker, op: str) -> tuple[str, tuple[int, ...]]:
    """An operator on a quantized image, with its shape."""
    x = m.image(3, *SIZE)
    if op == "Conv":
        weight, _ = m.weights((8, 3, 3, 3), 0)
        return m.node(op, [x.name, weight], kernel_shape=[3, 3], pads=[1] * 4)[0], (1, 8, *SIZE)
    if op == "ConvTranspose":
        weight, _ = m.weights((3, 8, 2, 2), 1)
        return m.node(op, [x.name, weight], kernel_shape=[2, 2], strides=[2, 2])[0], (1, 8, 24, 24)
    if op == "Gemm":
        flat = m.pair(*m.node("Flatten", [x.name]), (1, 432), x.scale, 0)
        weight, _ = m.weights((8, 432), 0)
        return m.node(op, [flat.name, weight], transB=1)[0], (1, 8)
    y = m.conv(x, 3)
    if op == "Add":
        return m.node(op, [y.name, m.conv(x, 3).name])[0], y.shape
    return m.node(op, [y.name])[0], (1, 3, 1, 1) if op == "GlobalAveragePool" else y.shape


def model(seed: int, op: str, clamp: str | None, reader: str, kind: tuple[str, int]) -> onnx.ModelProto:
    m = OnnxMaker(random.Random(seed), dtype=kind[0])
    value, shape = sums(m, op)
    if reader == "output":
        m.outputs.append(value)
    elif reader == "host":
        m.outputs += m.node("Erf", [value])
    else:
        m.output(m.pair(value, shape, 0.03))
    if clamp == "Relu":
        (value,) = m.node("Relu", [value])
    elif clamp == "Clip":
        (value,) = m.node("Clip", [value, m.constant(np.float32(-1)), m.constant(np.float32(3))])
    m.output(m.pair(value, shape, 0.02, kind[1]))
    return m.model()


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("clamp", [None, "Relu", "Clip"])
@pytest.mark.parametrize("op", ["Conv", "ConvTranspose", "Gemm", "Add", "GlobalAveragePool", "Sigmoid"])
def test_every_byte_equals_the_integer_form(op: str, clamp: str | None, reader: str, seed: int) -> None:
    for number, kind in enumerate(ZEROS):
        assert_equal(model(seed + number, op, clamp, reader, kind), seed)


@pytest.mark.parametrize("reader", READERS)
def test_a_checked_session(reader: str, seed: int) -> None:
    program = intloom.compile(model(seed, "Conv", "Relu", reader, ("uint8", 17)), "nano")
    session = intloom.Session(program, backend="isa", check=True)
    session.run(None, feeds_of(program, seed))
    assert session.last is not None
    assert session.last.record["mismatches"] == 0


def test_clamped_sums_with_readers(seed: int) -> None:
    m = OnnxMaker(random.Random(seed))
    value, shape = sums(m, "Conv")
    (clamped,) = m.node("Relu", [value])
    m.outputs.append(clamped)
    m.output(m.pair(clamped, shape, 0.02, 9))
    assert_equal(m.model(), seed)


def test_two_units_of_one_sum_with_equal_parameters(seed: int) -> None:
    m = OnnxMaker(random.Random(seed))
    value, shape = sums(m, "Conv")
    first: Value = m.pair(value, shape, 0.02, 9)
    m.output(m.conv(first, 4))
    m.output(m.pair(value, shape, 0.02, 9))
    assert_equal(m.model(), seed)
