"""What `inspect` advises is right: following the remedy of a node on the host brings it to the accelerator."""

import random
from collections.abc import Callable

import numpy as np
import pytest

from intloom.compiler.frontend import fold_model
from intloom.compiler.importer import from_proto
from intloom.compiler.partition.assignment import Assignment
from tests.support.onnx_maker import OnnxMaker, Value
from tests.support.parity import assert_equal

Build = Callable[[OnnxMaker, Value, bool], None]


def _pair_after(m: OnnxMaker, x: Value, fixed: bool) -> None:
    (value,) = m.node("Sigmoid", [x.name])
    m.output(m.pair(value, x.shape, 1 / 255, 0) if fixed else Value(value, x.shape, 1.0))


def _pair_inside(m: OnnxMaker, x: Value, fixed: bool) -> None:
    value = m.node("Sigmoid", [x.name])[0]
    if fixed:
        value = m.pair(value, x.shape, 1 / 255, 0).name
    pooled = m.node("AveragePool", [value], kernel_shape=[2, 2])[0]
    m.output(m.pair(pooled, (1, 8, 5, 5), 1 / 240, 0))


def _mode(m: OnnxMaker, x: Value, fixed: bool) -> None:
    scales = m.constant(np.array([1, 1, 2, 2], np.float32))
    modes = {"mode": "nearest" if fixed else "cubic", "coordinate_transformation_mode": "asymmetric"}
    (value,) = m.node("Resize", [x.name, "", scales], nearest_mode="floor", **modes)
    m.output(m.pair(value, (1, 8, 12, 12), x.scale))


def _linear(m: OnnxMaker, x: Value, fixed: bool) -> None:
    factor = 3 if fixed else 2
    scales = m.constant(np.array([1, 1, factor, factor], np.float32))
    (value,) = m.node("Resize", [x.name, "", scales], mode="linear")
    m.output(m.pair(value, (1, 8, 6 * factor, 6 * factor), x.scale))


def _coordinates(m: OnnxMaker, x: Value, fixed: bool) -> None:
    scales = m.constant(np.array([1, 1, 2, 2], np.float32))
    transformation = "asymmetric" if fixed else "align_corners"
    modes = {"coordinate_transformation_mode": transformation, "nearest_mode": "floor"}
    (value,) = m.node("Resize", [x.name, "", scales], mode="nearest", **modes)
    m.output(m.pair(value, (1, 8, 12, 12), x.scale))


def _padding(m: OnnxMaker, x: Value, fixed: bool) -> None:
    pads = m.constant(np.array([0, 0, 1, 1, 0, 0, 1, 1]))
    (value,) = m.node("Pad", [x.name, pads], mode="constant" if fixed else "wrap")
    m.output(m.pair(value, (1, 8, 8, 8), x.scale, 0))


def _padded_axis(m: OnnxMaker, x: Value, fixed: bool) -> None:
    pads = m.constant(np.array([0, 1, 0, 0, 0, 0, 0, 0]))
    (value,) = m.node("Pad", [x.name, pads], mode="constant" if fixed else "edge")
    m.output(m.pair(value, (1, 9, 6, 6), x.scale, 0))


def _alpha(m: OnnxMaker, x: Value, fixed: bool) -> None:
    (flat,) = m.node("Flatten", [x.name])
    weight, _ = m.weights((8 * 36, 5), 1)
    row = m.pair(flat, (1, 8 * 36), x.scale)
    (value,) = m.node("Gemm", [row.name, weight], alpha=1.0 if fixed else 0.5)
    m.output(m.pair(value, (1, 5), x.scale * 9))


def _dilated(m: OnnxMaker, x: Value, fixed: bool) -> None:
    dilation = 1 if fixed else 2
    (value,) = m.node("MaxPool", [x.name], kernel_shape=[2, 2], dilations=[dilation] * 2)
    m.output(m.pair(value, (1, 8, 6 - dilation, 6 - dilation), x.scale))


def _far_dilated(m: OnnxMaker, x: Value, fixed: bool) -> None:
    """The instruction has 4 bits for a dilation."""
    dilation = 15 if fixed else 16
    value = m.conv(x, 4, 3, dilations=[1, dilation], pads=[1, 14, 1, 2 * dilation - 14])
    m.output(Value(value.name, (1, 4, 6, 6), value.scale))


def _two_scales(m: OnnxMaker, x: Value, fixed: bool) -> None:
    """The DequantizeLinear after a MaxPool of stored values has another scale than before it."""
    stored, *parameters = m.nodes[-1].input
    other = [m.constant(np.float32(2 * x.scale)), parameters[1]]
    (pooled,) = m.node("MaxPool", [stored], kernel_shape=[2, 2])
    (value,) = m.node("DequantizeLinear", [pooled, *(parameters if fixed else other)])
    m.output(m.conv(Value(value, (1, 8, 5, 5), x.scale), 4))


def _residual(m: OnnxMaker, x: Value, fixed: bool) -> None:
    """Convolution, SiLU and residual without a pair between; one after the convolution is enough."""
    weight, scales = m.weights((8, 8, 1, 1), 0)
    (value,) = m.node("Conv", [x.name, weight, m.bias(scales, x.scale)])
    value = m.pair(value, x.shape, x.scale, 128).name if fixed else value
    (silu,) = m.node("Mul", [value, *m.node("Sigmoid", [value])])
    m.output(m.pair(*m.node("Add", [silu, x.name]), x.shape, 2 * x.scale, 128))


def _function_of_a_sum(m: OnnxMaker, x: Value, fixed: bool) -> None:
    """Scales are powers of two: of others, some cause irregular rounding of the sum, which has a remedy of its own."""
    scale = 1 / 32
    terms = [m.pair(term, x.shape, scale).name for term in (x.name, m.conv(x, 8).name)]
    (value,) = m.node("Add", terms)
    value = m.pair(value, x.shape, 2 * scale, 128).name if fixed else value
    (silu,) = m.node("Mul", [value, *m.node("Sigmoid", [value])])
    m.output(m.pair(silu, x.shape, 2 * scale, 128))


CASES: dict[str, tuple[str, str, Build]] = {
    "pair after": ("Sigmoid", "add a QuantizeLinear, DequantizeLinear pair after it", _pair_after),
    "pair inside": ("AveragePool", "quantize the output of", _pair_inside),
    "residual": ("Add", "quantize the output of", _residual),
    "function of a sum": ("Mul", "quantize after every operator", _function_of_a_sum),
    "mode": ("Resize", "use mode nearest", _mode),
    "linear": ("Resize", "enlarge by 3", _linear),
    "coordinates": ("Resize", "coordinate_transformation_mode asymmetric and nearest_mode floor", _coordinates),
    "padding": ("Pad", "use mode constant", _padding),
    "padded axis": ("Pad", "pad images, with mode constant", _padded_axis),
    "alpha": ("Gemm", "fold alpha and beta into the weights", _alpha),
    "dilation": ("MaxPool", "use dilations of 1", _dilated),
    "far dilation": ("Conv", "use dilations of at most 15", _far_dilated),
    "two scales": ("Conv", "same scale and zero point", _two_scales),
}


def assignments(build: Build, seed: int, fixed: bool) -> tuple[list[Assignment], OnnxMaker]:
    m = OnnxMaker(random.Random(seed))
    build(m, m.conv(m.image(3, 6, 6), 8), fixed)
    return list(fold_model(from_proto(m.model(), name="m")).assignments), m


@pytest.mark.parametrize("name", CASES)
def test_following_a_remedy_changes_the_target(name: str, seed: int) -> None:
    op, remedy, build = CASES[name]
    before = [a for a in assignments(build, seed, False)[0] if a.op == op][-1]
    assert before.target == "host", before
    assert remedy in before.remedy
    after, m = assignments(build, seed, True)
    assert [a.target for a in after if a.target == "host"] == []
    assert_equal(m.model(), seed)


@pytest.mark.parametrize("op", ["GRU", "LSTM", "RNN"])
def test_recurrent_cells_are_refused_with_their_reason(op: str, seed: int) -> None:
    m = OnnxMaker(random.Random(seed))
    gates = {"GRU": 3, "LSTM": 4, "RNN": 1}[op]
    x = m.conv(m.image(3, 1, 6), 8, 1)
    (steps,) = m.node("Transpose", m.node("Squeeze", [x.name, m.constant(np.array([2]))]), perm=[2, 0, 1])
    noise = np.random.default_rng(seed)
    weights = [m.constant(noise.normal(size=(1, gates * 5, n)).astype(np.float32)) for n in (8, 5)]
    m.outputs += m.node(op, [steps, *weights], hidden_size=5)
    (cell,) = (a for a in fold_model(from_proto(m.model(), name="m")).assignments if a.op == op)
    assert cell.target == "host"
    assert "keeps a state from step to step" in cell.reason
    assert "convolutions over time" in cell.remedy
