"""Forms of quantized operators that the corpus lacks: equal to onnxruntime, or with a reason and a remedy."""

import random

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from intloom.common.errors import UnsupportedError
from intloom.compiler.fold.target import Target
from intloom.compiler.frontend import fold_model
from intloom.compiler.importer import from_proto
from intloom.compiler.refusals import Refusal
from tests.support.corpus.builder import given, parameters, scales, stored
from tests.support.onnx_maker import OnnxMaker
from tests.support.parity import assert_equal, compare

ROW = (1, 24)
MS = {"domain": "com.microsoft"}


def entry(m: OnnxMaker) -> list[str]:
    """A quantized row, with scale and zero point."""
    names = parameters(m, 0.02, 120)
    return [*m.node("QuantizeLinear", [given(m, "x", ROW), *names]), *names]


def finish(m: OnnxMaker, value: str) -> onnx.ModelProto:
    """The model whose output is the quantized value, dequantized."""
    names = parameters(m, 0.1, 90)
    m.outputs += m.node("DequantizeLinear", [*m.node("QuantizeLinear", [value, *names]), *names])
    return m.opened()


def test_a_gemm_without_a_result_scale_gives_floats(rng: random.Random, seed: int) -> None:
    m = OnnxMaker(rng)
    w = [stored(m, (24, 7)), *parameters(m, 0.01, 0, np.int8)]
    (value,) = m.node("QGemm", [*entry(m), *w], **MS)
    assert compare(finish(m, value), seed).largest <= 1


@pytest.mark.parametrize("integers", [False, True])
def test_chains_of_matmul_integer_with_a_float_bias(integers: bool, rng: random.Random, seed: int) -> None:
    """MatMulInteger, Cast, Mul by the product of scales, Add, as exporters of quantization-aware training write it."""
    m = OnnxMaker(rng)
    x = entry(m)
    (value,) = m.node("MatMulInteger", [x[0], stored(m, (24, 7)), x[2]])
    if integers:
        (value,) = m.node("Add", [value, m.constant(np.arange(-300, 400, 100, dtype=np.int32))])
    (value,) = m.node("Cast", [value], to=TensorProto.FLOAT)
    factors = np.float32(0.02) * np.linspace(0.002, 0.01, 7, dtype=np.float32)
    (value,) = m.node("Mul", [value, m.constant(factors)])
    (value,) = m.node("Add", [value, m.constant(np.linspace(-1, 1, 7, dtype=np.float32))])
    model = finish(m, value)
    if integers:  # A layer has one bias.
        with pytest.raises(UnsupportedError, match="is not quantized"):
            _ = fold_model(from_proto(model, name="m")).graph
        return
    found = assert_equal(model, seed)
    assert found.folded.final_host_part is None
    assert [v.target for v in found.folded.assignments if v.op == "MatMulInteger"] == [Target.ARRAY]


def test_weights_of_four_bits_with_a_negative_axis(rng: random.Random, seed: int) -> None:
    m = OnnxMaker(rng, opset=21)
    x, values = m.image(8, 6, 6), np.random.default_rng(seed).integers(-8, 8, (4, 8, 1, 1))
    m.stored.append(helper.make_tensor("w4", TensorProto.INT4, values.shape, values.ravel().tolist()))
    m.stored.append(helper.make_tensor("z4", TensorProto.INT4, (4,), [0] * 4))
    (weight,) = m.node("DequantizeLinear", ["w4", scales(m, 4), "z4"], axis=-4)
    (value,) = m.node("Conv", [x.name, weight])
    m.output(m.pair(value, (1, 4, 6, 6), 0.05))
    assert assert_equal(m.opened(), seed).folded.final_host_part is None


@pytest.mark.parametrize("op", ["Mystery", "Relu", "Clip", "Conv", "MaxPool", "Sigmoid", "Reshape"])
@pytest.mark.parametrize("quantized", [False, True])
def test_an_operator_of_an_unknown_domain_is_unsupported(op: str, quantized: bool, rng: random.Random) -> None:
    """Whatever the standard domain calls so."""
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 6, 6), 8)
    (value,) = m.node(op, [x.name], domain="acme")
    if quantized:
        m.output(m.pair(value, x.shape, x.scale))
    else:
        m.outputs.append(value)
    *_, assignment = (v for v in fold_model(from_proto(m.opened(), name="m")).assignments if v.op == op)
    assert assignment.target is Target.UNSUPPORTED
    assert f"acme::{op}" in assignment.reason
    assert "register" in assignment.remedy


@pytest.mark.parametrize("scale", [1e-9, 1e-14, 1e-25])
def test_a_scale_so_small_that_every_sum_saturates(scale: float, rng: random.Random, seed: int) -> None:
    """The quantizer makes such scales for values that are 0 on all samples, as in squeeze-and-excitation."""
    m = OnnxMaker(rng)
    weight, _ = m.weights((4, 3, 1, 1), 0)
    (value,) = m.node("Conv", [m.image(3, 6, 6).name, weight])
    m.output(m.pair(value, (1, 4, 6, 6), scale, 100))
    found = assert_equal(m.model(), seed)
    assert [a.target for a in found.folded.assignments if a.op == "Conv"] == [Target.ARRAY]


@pytest.mark.parametrize("domain", ["onnx.brevitas", "qonnx.custom_op.general", "mct_quantizers"])
def test_nodes_of_qonnx_are_refused_by_name(domain: str, rng: random.Random) -> None:
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 6, 6), 8)
    m.output(x)
    model = m.model()
    model.graph.node.append(helper.make_node("Quant", [x.name], ["quantized"], name="q", domain=domain))
    with pytest.raises(UnsupportedError, match=f"'q' is Quant of {domain}") as error:
        from_proto(model, name="m")
    assert error.value.row == Refusal.QONNX.number


def test_a_change_of_order_in_a_region_that_returns_to_the_host(rng: random.Random, seed: int) -> None:
    """Without multiplications, everything after the first host operator returns to the host, and so does its order."""
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 6, 6), 8)
    (value,) = m.node("LpNormalization", [x.name], axis=1)
    (value,) = m.node("Neg", [m.pair(value, x.shape, 0.01).name])
    (value,) = m.node("Transpose", [m.pair(value, x.shape, 0.01, 100).name], perm=[0, 2, 3, 1])
    (value,) = m.node("LpNormalization", [m.pair(value, (1, 6, 6, 8), 0.01, 100).name], axis=1)
    m.outputs.append(value)
    assert len(assert_equal(m.opened(), seed).folded.regions) == 1


def test_a_change_of_order_for_what_returned_to_the_host(rng: random.Random, seed: int) -> None:
    """The sum between two host operators returns, and the host then needs tokens of the first region in order."""
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 6, 6), 8)
    sequence = m.constant(np.array([1, 8, 36]))

    def as_tokens(value: str) -> str:
        return m.node("Transpose", m.node("Reshape", [value, sequence]), perm=[0, 2, 1])[0]

    tokens = m.pair(m.node("MatMul", [as_tokens(x.name), m.weights((8, 8), 1)[0]])[0], (1, 36, 8), x.scale)
    (value,) = m.node("LpNormalization", [x.name], axis=1)
    other = as_tokens(m.conv(m.pair(value, x.shape, 0.01), 8, kernel=1).name)
    total = m.pair(*m.node("Add", [tokens.name, other]), tokens.shape, x.scale)
    (value,) = m.node("LpNormalization", [total.name], axis=1)
    (value,) = m.node("Reshape", [value, m.constant(np.array(x.shape))])
    m.output(m.conv(m.pair(value, x.shape, 0.01), 64))
    assert len(assert_equal(m.opened(), seed).folded.regions) == 2


@pytest.mark.parametrize(("form", "layer"), [((32, 32), "Gemm"), ((32, 1, 32), "MatMul")])
def test_rows_that_the_host_computes(form: tuple[int, ...], layer: str, rng: random.Random, seed: int) -> None:
    """The classifier of a text recognizer: a product with the rows that a recurrent cell leaves, one for each step."""
    m, noise = OnnxMaker(rng), np.random.default_rng(seed)
    x = m.conv(m.image(3, 8, 8), 32)
    (steps,) = m.node("Reshape", [x.name, m.constant(np.array([32, 1, 64]))])
    gates = [m.constant(noise.normal(0, 0.3, (1, 128, n)).astype(np.float32)) for n in (64, 32)]
    (value,) = m.node("LSTM", [m.pair(steps, (32, 1, 64), x.scale).name, *gates], hidden_size=32)
    cells = m.pair(value, (32, 1, 1, 32), 0.01, 128)
    names = parameters(m, 0.01, 128)
    (value,) = m.node("Reshape", [cells.name, m.constant(np.array(form))])
    (value,) = m.node("DequantizeLinear", [*m.node("QuantizeLinear", [value, *names]), *names])
    (value,) = m.node(layer, [value, m.weights((32, 300), 1)[0]])
    m.output(m.pair(value, (*form[:-1], 300), 0.02))
    found = assert_equal(m.opened(), seed)
    assert [a.target for a in found.folded.assignments if a.op == layer] == [Target.ARRAY]
