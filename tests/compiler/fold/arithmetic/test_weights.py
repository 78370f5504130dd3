"""Biases of a wrong length or value are unsupported, with the reason; NaN weights stay with the host."""

import numpy as np
import pytest

from intloom.common.errors import ModelError
from intloom.compiler.fold.arithmetic.weights import Weights, array_bias, array_weights
from intloom.compiler.fold.target import Target
from intloom.compiler.frontend import fold_model
from intloom.compiler.importer import from_proto
from intloom.compiler.refusals import UnsupportedPattern
from tests.support.onnx_maker import OnnxMaker
from tests.support.parity import assert_equal


def assignment_of(m, op):
    return next(v for v in fold_model(from_proto(m.model(), name="m")).assignments if v.op == op)


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("quantized", [True, False])
def test_a_bias_of_another_length(count, quantized, rng):
    m = OnnxMaker(rng)
    x = m.image(3, 6, 6)
    weight, scales = m.weights((4, 3, 1, 1), 0)
    bias = m.bias(np.resize(scales, count), x.scale) if quantized else m.constant(np.ones(count, np.float32))
    (value,) = m.node("Conv", [x.name, weight, bias])
    m.output(m.pair(value, (1, 4, 6, 6), 0.05))
    with pytest.raises(ModelError, match="its bias must have shape"):
        assignment_of(m, "Conv")


@pytest.mark.parametrize(("value", "target"), [(0, Target.ARRAY), (50, Target.HOST)])
def test_a_bias_with_the_scale_of_another_layer(value, target, rng, seed):
    m = OnnxMaker(rng)
    x = m.image(3, 6, 6)
    weight, scales = m.weights((4, 3, 1, 1), 0)
    stored = [m.constant(np.full(4, value, np.int32)), m.constant(scales), m.constant(np.zeros(4, np.int32))]
    (made,) = m.node("Conv", [x.name, weight, *m.node("DequantizeLinear", stored, axis=0)])
    m.output(m.pair(made, (1, 4, 6, 6), 0.05))
    assert assignment_of(m, "Conv").target is target
    if target is Target.ARRAY:
        assert_equal(m.model(), seed)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("value", "reason"), [(np.nan, "no numbers"), (1e30, "leave 32 bits"), (-np.inf, "leave 32 bits")]
)
def test_a_float_bias_out_of_range(value, reason, rng):
    m = OnnxMaker(rng)
    x = m.image(3, 6, 6, 0)
    weight, _ = m.weights((4, 3, 1, 1), 0)
    bias = m.constant(np.array([0, value, 0, 0], np.float32))
    (made,) = m.node("Conv", [x.name, weight, bias])
    m.output(m.pair(made, (1, 4, 6, 6), 0.05))
    assignment = assignment_of(m, "Conv")
    assert assignment.target is Target.HOST
    assert reason in assignment.reason


@pytest.mark.filterwarnings("error")
def test_nan_weights_stay_with_the_host(rng):
    m = OnnxMaker(rng)
    x = m.image(3, 6, 6)
    weight = np.ones((4, 3, 1, 1), np.float32)
    weight[1, 2] = np.nan
    parameters = [m.constant(np.float32(0.1)), m.constant(np.int8(0))]
    (stored,) = m.node("QuantizeLinear", [m.constant(weight), *parameters])
    (real,) = m.node("DequantizeLinear", [stored, *parameters])
    (made,) = m.node("Conv", [x.name, real])
    m.output(m.pair(made, (1, 4, 6, 6), 0.05))
    assert assignment_of(m, "Conv").target is Target.HOST


def test_weights_are_int8_where_that_holds_them():
    assert array_weights(np.array([[-128, 127]], np.int32), "n").dtype == np.int8
    assert array_weights(np.array([[-255, 0], [0, 255]], np.int32), "n").tolist() == [[-255, 0], [0, 255]]


@pytest.mark.parametrize(("transposed", "bias"), [(False, 0), (False, -77), (True, 0), (True, 77)])
def test_sums_reach_the_ends_of_32_bits_and_no_further(transposed: bool, bias: int) -> None:
    """The largest sum of a channel's products and its bias is 2**31 - 1; then a weight is larger by 1."""
    factor = 255 if transposed else 128
    values = np.full((1, ((1 << 31) - 1 - abs(bias)) // factor // 255 + 1), 255)
    values[0, 0] = ((1 << 31) - 1 - abs(bias)) // factor - 255 * (values.size - 1)

    def made(values: np.ndarray) -> np.ndarray:
        weights = Weights(values.astype(np.int32), np.ones(1, np.float32), extra=(0, 0) if transposed else None)
        return array_bias(weights, np.array([bias]), 0, name="n", wraps=False)

    assert made(values) == bias
    values[0, 0] += 1
    with pytest.raises(UnsupportedPattern, match="may leave 32 bits"):
        made(values)


def test_weights_that_are_no_bytes_minus_a_zero_point_are_refused():
    with pytest.raises(UnsupportedPattern, match="'n' and 0 are 256 apart"):
        array_weights(np.array([[-200, 56]], np.int32), "n")
