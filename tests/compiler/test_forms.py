"""All forms of quantized operators equal onnxruntime; unsupported forms have a reason and a remedy."""

import random

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from intloom.common.errors import ModelError, UnsupportedError
from intloom.compiler.fold.target import Target
from intloom.compiler.frontend import fold_model
from intloom.compiler.importer import from_proto
from intloom.compiler.refusals import Refusal
from tests.support.onnx_maker import OnnxMaker
from tests.support.parity import assert_equal, compare

SHAPE = (1, 8, 6, 6)
ROW = (1, 24)
MS = {"domain": "com.microsoft"}


def qp(m: OnnxMaker, scale: float, zero: int) -> list[str]:
    """Scale and zero point."""
    return [m.constant(np.float32(scale)), m.constant(np.uint8(zero))]


def entry(m: OnnxMaker, shape: tuple[int, ...], scale: float, zero: int) -> list[str]:
    """Quantized value of a float input, with scale and zero point."""
    name = m.fresh("input")
    m.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
    parameters = qp(m, scale, zero)
    return [*m.node("QuantizeLinear", [name, *parameters]), *parameters]


def finish(m: OnnxMaker, stored: str, parameters: list[str]) -> onnx.ModelProto:
    """The model whose output dequantizes `stored`; only the importer infers its types."""
    m.outputs += m.node("DequantizeLinear", [stored, *parameters])
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in m.outputs]
    graph = helper.make_graph(m.nodes, "forms", m.inputs, outputs, m.stored)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def integers(rng: random.Random, shape: tuple[int, ...], kind: type = np.int8) -> np.ndarray:
    info = np.iinfo(kind)
    return np.random.default_rng(rng.getrandbits(32)).integers(info.min, info.max, shape, endpoint=True).astype(kind)


def scales(rng: random.Random, count: int) -> np.ndarray:
    return np.random.default_rng(rng.getrandbits(32)).uniform(0.002, 0.01, count).astype(np.float32)


def qlinear_conv(m: OnnxMaker) -> onnx.ModelProto:
    x, out = entry(m, SHAPE, 0.02, 120), qp(m, 0.2, 130)
    w = [m.constant(integers(m.rng, (4, 8, 3, 3))), m.constant(scales(m.rng, 4)), m.constant(np.zeros(4, np.int8))]
    bias = m.constant(np.arange(4, dtype=np.int32) * 999)
    return finish(m, m.node("QLinearConv", [*x, *w, *out, bias], pads=[1] * 4)[0], out)


def qlinear_conv_uint8(m: OnnxMaker) -> onnx.ModelProto:
    x, out = entry(m, SHAPE, 0.02, 120), qp(m, 0.2, 130)
    w = [m.constant(integers(m.rng, (4, 8, 1, 1), np.uint8)), *qp(m, 0.005, 117)]
    return finish(m, m.node("QLinearConv", [*x, *w, *out])[0], out)


def qlinear_matmul(m: OnnxMaker) -> onnx.ModelProto:
    x, out = entry(m, ROW, 0.02, 120), qp(m, 0.1, 90)
    w = [m.constant(integers(m.rng, (24, 7))), m.constant(scales(m.rng, 7)), m.constant(np.zeros(7, np.int8))]
    return finish(m, m.node("QLinearMatMul", [*x, *w, *out])[0], out)


def qgemm(m: OnnxMaker) -> onnx.ModelProto:
    x, out = entry(m, ROW, 0.02, 120), qp(m, 0.1, 90)
    w = [m.constant(integers(m.rng, (7, 24))), m.constant(scales(m.rng, 7)), m.constant(np.zeros(7, np.int8))]
    bias = m.constant(np.arange(7, dtype=np.int32) * 99)
    return finish(m, m.node("QGemm", [*x, *w, bias, *out], transB=1, **MS)[0], out)


def binary(op: str):
    def make(m: OnnxMaker) -> onnx.ModelProto:
        a, b, out = entry(m, SHAPE, 0.021, 120), entry(m, SHAPE, 0.013, 7), qp(m, 0.033, 130)
        return finish(m, m.node(op, [*a, *b, *out], **MS)[0], out)

    return make


def unary(op: str, scale: float, zero: int, **attributes: object):
    def make(m: OnnxMaker) -> onnx.ModelProto:
        x, out = entry(m, SHAPE, 0.05, 120), qp(m, scale, zero)
        return finish(m, m.node(op, [*x, *out], **MS, **attributes)[0], out)

    return make


def qlinear_concat(m: OnnxMaker) -> onnx.ModelProto:
    a, b, out = entry(m, SHAPE, 0.021, 120), entry(m, SHAPE, 0.013, 7), qp(m, 0.023, 100)
    return finish(m, m.node("QLinearConcat", [*out, *a, *b], axis=1, **MS)[0], out)


FORMS = {
    "QLinearConv": qlinear_conv,
    "QLinearConv, uint8 weights": qlinear_conv_uint8,
    "QLinearMatMul": qlinear_matmul,
    "QGemm": qgemm,
    "QLinearAdd": binary("QLinearAdd"),
    "QLinearMul": binary("QLinearMul"),
    "QLinearConcat": qlinear_concat,
    "QLinearSigmoid": unary("QLinearSigmoid", 1 / 256, 0),
    "QLinearLeakyRelu": unary("QLinearLeakyRelu", 0.04, 60, alpha=0.1),
    "QLinearAveragePool": unary("QLinearAveragePool", 0.043, 110, kernel_shape=[2, 3]),
    "QLinearAveragePool, ties": unary("QLinearAveragePool", 0.05, 111, kernel_shape=[2, 2]),
    "QLinearGlobalAveragePool": unary("QLinearGlobalAveragePool", 0.011, 110),
}


@pytest.mark.parametrize("name", FORMS)
def test_integer_operators(name: str, rng: random.Random, seed: int) -> None:
    found = assert_equal(FORMS[name](OnnxMaker(rng)), seed)
    assert found.folded.final_host_part is None
    assert not any(found.folded.host_parts)


def test_softmax_divides_and_stays_with_the_host(rng: random.Random, seed: int) -> None:
    model = unary("QLinearSoftmax", 1 / 256, 0, axis=1, opset=13)(OnnxMaker(rng))
    assignment = next(v for v in fold_model(from_proto(model, name="m")).assignments if v.op == "QLinearSoftmax")
    assert assignment.target is Target.HOST
    assert "no division" in assignment.reason


def test_a_gemm_without_a_result_scale_gives_floats(rng: random.Random, seed: int) -> None:
    m = OnnxMaker(rng)
    x = entry(m, ROW, 0.02, 120)
    w = [m.constant(integers(m.rng, (24, 7))), m.constant(np.float32(0.01)), m.constant(np.int8(0))]
    (value,) = m.node("QGemm", [*x, *w], **MS)
    out = qp(m, 0.1, 90)
    (stored,) = m.node("QuantizeLinear", [value, *out])
    found = compare(finish(m, stored, out), seed)
    assert found.largest <= 1


@pytest.mark.parametrize("bias", [False, True])
def test_chains_of_matmul_integer(bias: bool, rng: random.Random, seed: int) -> None:
    """MatMulInteger, Cast, Mul by the product of scales, Add, as exporters of quantization-aware training write it."""
    m = OnnxMaker(rng)
    x, out = entry(m, ROW, 0.02, 120), qp(m, 0.1, 90)
    weight = m.constant(integers(rng, (24, 7)))
    (value,) = m.node("MatMulInteger", [x[0], weight, x[2]])
    (value,) = m.node("Cast", [value], to=TensorProto.FLOAT)
    (value,) = m.node("Mul", [value, m.constant(np.float32(0.02) * scales(rng, 7))])
    if bias:
        (value,) = m.node("Add", [value, m.constant(np.linspace(-1, 1, 7, dtype=np.float32))])
    (stored,) = m.node("QuantizeLinear", [value, *out])
    found = assert_equal(finish(m, stored, out), seed)
    assert found.folded.final_host_part is None
    assert [v.target for v in found.folded.assignments if v.op == "MatMulInteger"] == [Target.ARRAY]


def test_a_dynamic_chain_stays_with_the_host(rng: random.Random) -> None:
    """The scale is known only when the model runs."""
    m = OnnxMaker(rng)
    m.inputs.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, ROW))
    y, scale, zero = m.node("DynamicQuantizeLinear", ["x"], ["xq", "xs", "xz"])
    (value,) = m.node("MatMulInteger", [y, m.constant(integers(rng, (24, 7))), zero])
    (value,) = m.node("Cast", [value], to=TensorProto.FLOAT)
    (value,) = m.node("Mul", [value, scale])
    m.outputs.append(value)
    found = fold_model(from_proto(m.model(), name="m"))
    assert not found.regions
    assert {v.target for v in found.assignments} == {Target.HOST}
    assert all(v.remedy for v in found.assignments)


def conv_of_weights(m: OnnxMaker, weight: str) -> onnx.ModelProto:
    """A convolution by dequantized weights [4, 8, 1, 1]."""
    x = m.image(8, 6, 6)
    (value,) = m.node("Conv", [x.name, weight])
    m.output(m.pair(value, (1, 4, 6, 6), 0.05))
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in m.outputs]
    graph = helper.make_graph(m.nodes, "weights", m.inputs, outputs, m.stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize(("dtype", "low", "high"), [("INT4", -8, 7), ("UINT4", 0, 15)])
@pytest.mark.parametrize("axis", [0, -4])
def test_weights_of_four_bits(dtype: str, low: int, high: int, axis: int, rng: random.Random, seed: int) -> None:
    m = OnnxMaker(rng, opset=21)
    values = np.random.default_rng(seed).integers(low, high + 1, (4, 8, 1, 1))
    kind = getattr(TensorProto, dtype)
    m.stored.append(helper.make_tensor("w4", kind, values.shape, values.ravel().tolist()))
    m.stored.append(helper.make_tensor("z4", kind, (4,), [(low + high + 1) // 2] * 4))
    (weight,) = m.node("DequantizeLinear", ["w4", m.constant(scales(rng, 4)), "z4"], axis=axis)
    model = conv_of_weights(m, weight)
    assert assert_equal(model, seed).folded.final_host_part is None


def test_blocked_weights_are_unsupported_with_a_remedy(rng: random.Random) -> None:
    m = OnnxMaker(rng, opset=21)
    values = integers(rng, (4, 8, 1, 1))
    blocks = np.full((4, 2, 1, 1), 0.01, np.float32)
    names = [m.constant(values), m.constant(blocks), m.constant(np.zeros((4, 2, 1, 1), np.int8))]
    (weight,) = m.node("DequantizeLinear", names, axis=1, block_size=4)
    assignment = next(
        v for v in fold_model(from_proto(conv_of_weights(m, weight), name="m")).assignments if v.op == "Conv"
    )
    assert assignment.target is Target.HOST
    assert "blocked" in assignment.reason
    assert "per output channel" in assignment.remedy


@pytest.mark.parametrize(
    ("zero", "named", "remedy"),
    [
        (np.array(0, np.int16), "int16", "uint8 or int8"),
        (np.array(0, np.uint16), "uint16", "uint8 or int8"),
        ("float8", "float8e4m3fn", "int8 or uint8"),
    ],
)
def test_other_activations_are_unsupported(zero: object, named: str, remedy: str, rng: random.Random) -> None:
    m = OnnxMaker(rng, opset=21)
    x = m.conv(m.image(3, 6, 6), 8)
    if isinstance(zero, str):
        m.stored.append(helper.make_tensor("zero", TensorProto.FLOAT8E4M3FN, (), [0.0]))
        name = "zero"
    else:
        name = m.constant(zero)
    scale = m.constant(np.float32(0.01))
    (sigmoid,) = m.node("Sigmoid", [x.name])
    (stored,) = m.node("QuantizeLinear", [sigmoid, scale, name])
    m.outputs += m.node("DequantizeLinear", [stored, scale, name])
    assignments = fold_model(from_proto(m.model(), name="m")).assignments
    assignment = next(v for v in assignments if v.op == "Sigmoid")
    assert assignment.target is Target.HOST
    assert named in assignment.reason
    assert remedy in f"{assignment.reason} {assignment.remedy}"


def test_blocked_activations_are_unsupported(rng: random.Random) -> None:
    m = OnnxMaker(rng, opset=21)
    x = m.conv(m.image(3, 6, 6), 8)
    names = [m.constant(np.full((1, 2, 6, 6), 0.01, np.float32)), m.constant(np.zeros((1, 2, 6, 6), np.uint8))]
    (sigmoid,) = m.node("Sigmoid", [x.name])
    (stored,) = m.node("QuantizeLinear", [sigmoid, *names], axis=1, block_size=4)
    m.outputs += m.node("DequantizeLinear", [stored, *names], axis=1, block_size=4)
    assignment = next(v for v in fold_model(from_proto(m.model(), name="m")).assignments if v.op == "Sigmoid")
    assert assignment.target is Target.HOST
    assert "several scales" in assignment.reason
    assert "per tensor" in assignment.remedy


@pytest.mark.parametrize("agrees", [True, False])
def test_output_dtype_and_zero_point(agrees: bool, rng: random.Random, seed: int) -> None:
    m = OnnxMaker(rng, opset=21)
    x = m.conv(m.image(3, 6, 6), 8)
    names = [m.constant(np.float32(0.004)), m.constant(np.uint8(0))]
    kind = TensorProto.UINT8 if agrees else TensorProto.INT8
    (sigmoid,) = m.node("Sigmoid", [x.name])
    (stored,) = m.node("QuantizeLinear", [sigmoid, *names], output_dtype=kind)
    m.outputs += m.node("DequantizeLinear", [stored, *names])
    if agrees:
        assert_equal(m.model(), seed)
        return
    with pytest.raises(ModelError, match=r"uint8|output_dtype|type"):
        fold_model(from_proto(m.model(), name="m"))


def test_an_unknown_operator_is_unsupported(rng: random.Random) -> None:
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 6, 6), 8)
    (value,) = m.node("Mystery", [x.name], domain="acme")
    outputs = [helper.make_tensor_value_info(value, TensorProto.FLOAT, None)]
    graph = helper.make_graph(m.nodes, "foreign", m.inputs, outputs, m.stored)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("acme", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    assignment = next(v for v in fold_model(from_proto(model, name="m")).assignments if v.op == "Mystery")
    assert assignment.target is Target.UNSUPPORTED
    assert "acme::Mystery" in assignment.reason
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
