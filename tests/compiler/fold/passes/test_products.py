"""Constants after a product become part of its weights and bias; the result equals onnxruntime in every byte."""

from dataclasses import dataclass

import numpy as np
import pytest
from onnx import TensorProto, helper

from intloom.compiler.fold.passes.constants import fold_constants
from intloom.compiler.fold.passes.products import fold_products
from intloom.compiler.fold.patterns.qparams import is_quantize
from intloom.compiler.fold.target import Target
from intloom.compiler.frontend import dump_pass
from intloom.compiler.importer import cut, from_proto, to_bytes
from intloom.compiler.ir import Conv
from intloom.compiler.reference import open_session
from tests.support.lowered import compared, kinds
from tests.support.onnx_maker import OnnxMaker
from tests.support.parity import assert_equal, folded


def assert_same_reals(m: OnnxMaker) -> None:
    """The comparison of bytes has the pass on both sides: the real values before rounding are the file's."""
    file = fold_constants(from_proto(m.model(), name="file"))
    values = [n.inputs[0] for n in file.nodes if is_quantize(n) and n.inputs[0] not in file.inputs]
    feed = np.random.default_rng(1).uniform(-1, 1, file.shape(file.inputs[0])).astype(np.float32)
    expected, made = (
        open_session(to_bytes(cut(model, model.nodes, model.inputs, values)), optimized=False).run(
            values, {file.inputs[0]: feed}
        )
        for model in (file, fold_products(file))
    )
    for one, two in zip(expected, made, strict=True):
        np.testing.assert_allclose(two, one, rtol=1e-5, atol=1e-4)


@dataclass(frozen=True)
class Form:
    """How a fully connected layer is written."""

    shape: tuple[int, ...] = (1, 24)
    transposed: bool = False
    identity: bool = False
    """An Identity is between its weights and the product."""
    quantized: bool = False
    """Its bias."""
    first: bool = False
    """The bias is the first operand of the Add."""
    wide: bool = False
    """The bias has the rank of the result."""
    relu: bool = False


FORMS = {
    "one row": Form(),
    "tokens": Form((1, 10, 24), first=True),
    "transposed weights": Form((1, 10, 24), transposed=True),
    "weights behind an Identity": Form(identity=True),
    "int32 bias": Form((1, 10, 24), quantized=True, first=True),
    "int32 bias of transposed weights": Form(transposed=True, quantized=True),
    "bias with more axes": Form((1, 10, 24), wide=True),
    "Relu": Form((1, 10, 24), relu=True),
}


def layer(m: OnnxMaker, form: Form) -> None:
    """A model of one layer of 24 inputs and 16 outputs."""
    m.inputs.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, form.shape))
    x = m.pair("x", form.shape, 1 / 100)
    shape, axis = ((16, 24), 0) if form.transposed else ((24, 16), 1)
    weight, scales = m.weights(shape, axis)
    if form.transposed:
        (weight,) = m.node("Transpose", [weight])
    if form.identity:
        (weight,) = m.node("Identity", [weight])
    bias = m.bias(scales, x.scale) if form.quantized else m.constant(np.linspace(-2, 2, 16, dtype=np.float32))
    if form.wide:
        bias = m.constant(np.linspace(-2, 2, 16, dtype=np.float32).reshape(1, 1, 16))
    sums = m.node("MatMul", [x.name, weight])
    (value,) = m.node("Add", [bias, *sums] if form.first else [*sums, bias])
    if form.relu:
        (value,) = m.node("Relu", [value])
    m.output(m.pair(value, (*form.shape[:-1], 16), 0.05))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_matmul_and_add_are_one_convolution(form, dtype, rng, seed):
    m = OnnxMaker(rng, dtype=dtype)
    layer(m, FORMS[form])
    result = compared(m, seed)
    # Tokens of an input are transposed by a product.
    assert set(kinds(result)) <= {"Conv", "Concat", "Slice", "Constant", "MatMul"}
    assert_same_reals(m)
    assert {len(n.bias) for n in result.folded.graph.nodes if isinstance(n, Conv)} == {16}


def normalized(m: OnnxMaker, gamma: np.ndarray, low: int = -127, then: str = "Relu") -> None:
    """A convolution of 6 channels, a batch normalization and an activation."""
    x, noise = m.image(4, 6, 6), np.random.default_rng(m.rng.getrandbits(32))
    values, scales = noise.integers(low, 128, (6, 4, 3, 3)).astype(np.int8), noise.uniform(0.002, 0.01, 6)
    values[0, 0] = low
    names = [m.constant(values), m.constant(scales.astype(np.float32)), m.constant(np.zeros(6, np.int8))]
    (weight,) = m.node("DequantizeLinear", names, axis=0)
    (value,) = m.node("Conv", [x.name, weight, m.constant(np.linspace(-1, 1, 6, dtype=np.float32))], pads=[1] * 4)
    statistics = [gamma, noise.normal(0, 1, 6), noise.normal(0, 1, 6), noise.uniform(0.5, 2, 6)]
    (value,) = m.node("BatchNormalization", [value, *(m.constant(s.astype(np.float32)) for s in statistics)])
    m.output(m.pair(m.node(then, [value])[0], (1, 6, 6, 6), 0.05))


SIGNS = np.array([1.0, -0.7, 0.3, -1.2, 0.01, 2.0])


@pytest.mark.parametrize("gamma", [SIGNS, abs(SIGNS), np.r_[0.0, SIGNS[1:]]], ids=["both signs", "positive", "zero"])
def test_batch_normalization_is_part_of_a_convolution(gamma, rng, seed):
    m = OnnxMaker(rng)
    normalized(m, gamma)
    assert kinds(compared(m, seed)) == ["Conv"]
    assert_same_reals(m)


def test_a_factor_that_no_stored_weights_have_leaves_the_layer_to_the_host(rng):
    m = OnnxMaker(rng)
    normalized(m, np.r_[-1.0, SIGNS[1:]], low=-128)
    rows = {a.op: a.row for a in folded(m.model()).assignments if a.target is Target.HOST}
    assert rows["BatchNormalization"] == 13


def test_an_activation_between_stays_float_and_names_the_missing_pair(rng, seed):
    m = OnnxMaker(rng)
    normalized(m, SIGNS, then="Sigmoid")
    assert "BatchNormalization" in dump_pass(from_proto(m.model(), name="m"), "products")
    reasons = {a.op: a.reason for a in folded(m.model()).assignments if a.target is Target.HOST}
    assert "BatchNormalization_node" in reasons["Sigmoid"] or "Conv_node" in reasons["Sigmoid"]
    assert "is not quantized" in reasons["Sigmoid"]


def test_two_readers_get_their_own_result(rng, seed):
    m = OnnxMaker(rng)
    x, (weight, _) = m.image(4, 6, 6), m.weights((6, 4, 1, 1), 0)
    (value,) = m.node("Conv", [x.name, weight])
    (value,) = m.node("Add", [value, m.constant(np.linspace(-1, 1, 6, dtype=np.float32).reshape(6, 1, 1))])
    m.output(m.pair(value, (1, 6, 6, 6), 0.05), m.pair(value, (1, 6, 6, 6), 0.07))
    assert_equal(m.model(), seed)
