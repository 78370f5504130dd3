"""Activations with a scale per channel, which onnxruntime itself cannot run next to a convolution."""

import numpy as np
import pytest
from onnx import numpy_helper

from intloom.compiler.reference import plain_session
from intloom.compiler.refusals import Refusal
from tests.support.onnx_maker import TYPES, OnnxMaker, Value
from tests.support.parity import Parity, assert_equal, random_feeds


def between_convolutions(m: OnnxMaker, scales: np.ndarray) -> None:
    x = m.conv(m.image(3, 6, 6), 8)
    weight, scale = m.weights((8, 8, 1, 1), 0)
    (value,) = m.node("Conv", [x.name, weight, m.bias(scale, x.scale)])
    kind = TYPES[m.dtype][0]
    names = [m.constant(scales.astype(np.float32)), m.constant(np.full(8, 7, kind))]
    (stored,) = m.node("QuantizeLinear", [value, *names], axis=1)
    (value,) = m.node("DequantizeLinear", [stored, *names], axis=1)
    m.output(m.conv(Value(value, x.shape, float(scales.mean())), 4))


def hosts(found: Parity) -> set[int]:
    """Rows of the list of the nodes that run on the host."""
    return {a.row for a in found.folded.assignments if a.target == "host"}


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_equal_scales_are_one_scale(dtype, rng, seed):
    m = OnnxMaker(rng, dtype)
    between_convolutions(m, np.full(8, 0.9))
    found = assert_equal(m.model(), seed)
    assert not hosts(found)
    assert len(found.folded.regions) == 1


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_other_scales_run_on_the_host(dtype, rng, seed):
    m = OnnxMaker(rng, dtype)
    between_convolutions(m, np.linspace(0.5, 1.5, 8))
    assert hosts(assert_equal(m.model(), seed)) == {Refusal.TYPE.number, Refusal.HOST.number}


def test_onnxruntime_fails_on_the_file_itself(rng, seed):
    """Why host parts divide and multiply by the scales."""
    m = OnnxMaker(rng)
    between_convolutions(m, np.linspace(0.5, 1.5, 8))
    with pytest.raises(Exception, match="QLinearConv"):
        plain_session(m.model().SerializeToString()).run(None, random_feeds(m.model(), seed))


@pytest.mark.parametrize(("axis", "equal"), [(0, False), (1, False), (0, True)])
def test_a_left_operand_of_a_product(axis, equal, rng, seed):
    """As quantizers write them per channel: onnxruntime's product has one scale for its left operand."""
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 1, 10), 6, kernel=1)
    (columns,) = m.node("Reshape", [x.name, m.constant(np.array([1, 6, 10]))])
    weight, scales = m.weights((5, 6), axis)
    if equal:
        m.stored[-2].CopyFrom(numpy_helper.from_array(np.full_like(scales, 0.01), m.stored[-2].name))
    (value,) = m.node("MatMul", [weight, columns])
    m.output(m.pair(value, (1, 5, 10), x.scale * 3))
    assert hosts(assert_equal(m.model(), seed)) == (set() if equal else {Refusal.WEIGHTS.number})
