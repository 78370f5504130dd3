"""int8 tensors with several readers prevent integer kernels of onnxruntime, which changes results next to ties."""

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from intloom.common.errors import UnsupportedError
from tests.support.onnx_maker import OnnxMaker
from tests.support.parity import folded, run_folded, run_onnxruntime

SHAPE = (1, 1, 256, 256)
SILU = ((0.04305782541632652, -41), (0.00391869992017746, -128), (0.029383832588791847, -119))
"""Parameters with which byte 113 gives a product of 225.50000760 steps of the result."""

quants = st.tuples(st.floats(1 / 256, 1 / 16, width=32), st.integers(-128, 127))


def image(m, quant):
    """A quantized input."""
    scale, zero = quant
    return m.image(*SHAPE[1:], zero, scale).name


def step(m, op, values, quant):
    """An operator and its QDQ pair."""
    return m.pair(m.node(op, values)[0], SHAPE, *quant)


def gate(rng, chosen, shared):
    """`x * sigmoid(x)`; where `shared`, a third operator reads the sigmoid too."""
    m = OnnxMaker(rng, "int8")
    x = image(m, chosen[0])
    sigmoid = step(m, "Sigmoid", [x], chosen[1]).name
    m.output(step(m, "Mul", [x, sigmoid], chosen[2]))
    if shared:
        m.output(step(m, "Relu", [sigmoid], chosen[1]))
    return m.model()


def pair(rng, op, chosen, shared):
    """An operator of two inputs; where `shared`, another operator reads the second input too."""
    m = OnnxMaker(rng, "int8")
    one, two = image(m, chosen[0]), image(m, chosen[1])
    m.output(step(m, "Relu", [step(m, op, [one, two], chosen[2]).name], chosen[2]))
    if shared:
        m.output(step(m, "Relu", [two], chosen[1]))
    return m.model()


def assert_bytes(model, chosen):
    """The model equals onnxruntime for all bytes, or all pairs of bytes, of its inputs."""
    codes = np.arange(np.prod(SHAPE)).reshape(SHAPE)
    bytes_ = (codes % 256 - 128, codes // 256 - 128)
    feeds = {
        value.name: ((b - zero) * np.float32(scale)).astype(np.float32)
        for value, b, (scale, zero) in zip(model.graph.input, bytes_, chosen, strict=False)
    }
    names = [o.name for o in model.graph.output]
    theirs, ours = run_onnxruntime(model.SerializeToString(), feeds, names), run_folded(folded(model), feeds)
    for name in names:
        np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)


@pytest.mark.parametrize("shared", [False, True])
def test_a_gate_next_to_a_tie(rng, shared):
    assert_bytes(gate(rng, SILU, shared), SILU)


@given(st.tuples(quants, quants, quants), st.booleans(), st.randoms(use_true_random=False))
@settings(max_examples=30)
def test_gates(chosen, shared, rng):
    assert_bytes(gate(rng, chosen, shared), chosen)


@given(
    st.sampled_from(["Add", "Mul"]), st.tuples(quants, quants, quants), st.booleans(), st.randoms(use_true_random=False)
)
@settings(max_examples=15)
def test_pairs(op, chosen, shared, rng):
    try:
        assert_bytes(pair(rng, op, chosen, shared), chosen)
    except UnsupportedError:
        reject()
