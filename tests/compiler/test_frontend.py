"""Whole models, folded and run by the golden model, equal onnxruntime in every integer tensor."""

import random

import numpy as np
import onnx
import pytest
from onnx import helper

from intloom.common.errors import UnsupportedError, UsageError
from intloom.compiler.fold.target import Target
from intloom.compiler.frontend import dump_pass, fold_model, pass_names
from intloom.compiler.importer import from_proto
from intloom.compiler.ir import Conv
from intloom.compiler.refusals import Refusal
from tests.support.given_model import given_model
from tests.support.onnx_maker import OnnxMaker, Value
from tests.support.parity import Parity, assert_equal


def folded(maker: OnnxMaker) -> Parity:
    return assert_equal(maker.model(), maker.rng.getrandbits(32))


def kinds(found: Parity) -> list[type]:
    return [type(n) for n in found.folded.graph.nodes]


def test_int8_activations_are_exact_and_warned_of(rng: random.Random) -> None:
    m = OnnxMaker(rng, dtype="int8")
    m.output(m.conv(m.image(3, 64, 64), 16))
    found = assert_equal(m.model(), rng.getrandbits(32))
    assert any("in float" in w for w in found.folded.warnings)


def test_an_output_may_also_be_consumed_and_be_called_1(rng: random.Random) -> None:
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 8, 8), 8)
    y = m.conv(x, 8)
    m.output(x, y)
    model = m.model()
    for old, new in ((x.name, "1"), (y.name, "10")):
        for names in (*((n.input, n.output) for n in model.graph.node),):
            for side in names:
                for i, name in enumerate(side):
                    side[i] = new if name == old else name
        for value in (*model.graph.output, *model.graph.value_info):
            value.name = new if value.name == old else value.name
    found = assert_equal(model, rng.getrandbits(32))
    assert {q.source for q in found.folded.output_quant.values()} == {"1", "10"}


def test_readers_of_a_host_result_name_its_cause() -> None:
    pairs = [
        helper.make_node(op, [a, "s", "z"], [b], name=b)
        for op, a, b in (
            ("QuantizeLinear", "x", "q"), ("DequantizeLinear", "q", "d"), ("QuantizeLinear", "r", "rq"),
            ("DequantizeLinear", "rq", "rd"), ("QuantizeLinear", "t", "tq"), ("DequantizeLinear", "tq", "y"),
        )
    ]  # fmt: skip
    nodes = [*pairs[:2], helper.make_node("Relu", ["d"], ["r"]), *pairs[2:4], helper.make_node("Relu", ["rd"], ["t"])]
    model = given_model([*nodes, *pairs[4:]], {"x": []}, {"y": []}, {"s": 0.1, "z": np.int8(0)})
    reasons = {a.name: a.reason for a in fold_model(from_proto(model, name="m")).assignments}
    first = "the host computes 'd' (row 19: a tensor of shape () is not a batch of vectors, sequences or images)"
    assert [reasons[n] for n in ("rq", "tq")] == [first, first]


def test_an_unquantized_model_has_no_graph(rng: random.Random) -> None:
    node = helper.make_node("Relu", ["x"], ["y"], name="relu")
    model = given_model([node], {"x": (1, 3, 8, 8)}, {"y": (1, 3, 8, 8)})
    found = fold_model(from_proto(model, name="float"))
    assert [v.target for v in found.assignments] == [Target.HOST]
    with pytest.raises(UnsupportedError, match="relu"):
        _ = found.graph


def test_a_resize_without_a_pair_is_warned_of(rng: random.Random) -> None:
    m = OnnxMaker(rng)
    x = m.image(3, 6, 6)
    scales = m.constant(np.array([1, 1, 2, 2], np.float32))
    modes = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    (value,) = m.node("Resize", [x.name, "", scales], **modes)
    m.output(m.conv(Value(value, (1, 3, 12, 12), x.scale), 8))
    found = assert_equal(m.model(), rng.getrandbits(32))
    assert any("in float" in w for w in found.folded.warnings)


@pytest.mark.parametrize("bias", ["integer", "float", "none"])
def test_chains_of_conv_integer(bias: str, rng: random.Random) -> None:
    """Sum, Add, Cast, Mul, as exporters of quantization-aware training write it. onnxruntime computes this in float."""
    m = OnnxMaker(rng)
    x = m.image(3, 8, 8, zero=7)
    zero, stored = m.nodes[-1].input[2], m.nodes[-1].input[0]
    weight = m.constant(np.random.default_rng(rng.getrandbits(32)).integers(-127, 127, (4, 3, 3, 3)).astype(np.int8))
    (value,) = m.node("ConvInteger", [stored, weight, zero], kernel_shape=[3, 3])
    if bias == "integer":
        (value,) = m.node("Add", [value, m.constant(np.arange(4, dtype=np.int32).reshape(1, 4, 1, 1) * 900)])
    (value,) = m.node("Cast", [value], to=1)
    (value,) = m.node("Mul", [value, m.constant(np.full((1, 4, 1, 1), 0.005 * x.scale, np.float32))])
    if bias == "float":
        (value,) = m.node("Add", [value, m.constant(np.ones((1, 4, 1, 1), np.float32))])
    m.output(m.pair(value, (1, 4, 6, 6), 0.03))
    found = assert_equal(m.model(), rng.getrandbits(32))
    assert kinds(found) == [Conv]
    assert found.folded.final_host_part is None


def test_every_pass_can_be_dumped(rng: random.Random) -> None:
    m = OnnxMaker(rng)
    m.output(m.silu(m.conv(m.image(3, 8, 8), 4)))
    model = from_proto(m.model(), name="shown")
    for name in pass_names():
        assert "onv" in dump_pass(model, name)
    with pytest.raises(UsageError, match="pass must be one of constants"):
        dump_pass(model, "nothing")


def test_the_model_is_unchanged(rng: random.Random) -> None:
    m = OnnxMaker(rng)
    m.output(m.silu(m.conv(m.image(3, 8, 8), 4)))
    proto: onnx.ModelProto = m.model()
    model = from_proto(onnx.ModelProto.FromString(proto.SerializeToString()), name="same")
    before = dump_pass(model, "constants")
    fold_model(model)
    assert dump_pass(model, "constants") == before


def test_the_host_reads_a_value_of_a_region_that_is_returned_to_it(rng: random.Random, seed: int) -> None:
    """The value lies in another order; without a result in the model's order, the host would compute it again."""
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 4, 4), 8)
    (rows,) = m.node("Reshape", [x.name, m.constant(np.array([1, 8, 16]))])
    tokens = m.pair(m.node("Transpose", [m.pair(rows, (1, 8, 16), x.scale).name], perm=[0, 2, 1])[0], (1, 16, 8), 0.05)
    tokens = m.unary("Sigmoid", tokens, 1 / 256)
    (others,) = m.node("Reshape", [m.conv(x, 8).name, m.constant(np.array([1, 8, 16]))])
    weights = m.unary("Softmax", m.pair(others, (1, 8, 16), 0.05), 0.003, axis=2)
    m.output(m.pair(m.node("MatMul", [weights.name, tokens.name])[0], (1, 8, 8), 0.01))
    result = assert_equal(m.model(), seed)
    assert {a.op: a.row for a in result.folded.assignments}["MatMul"] == Refusal.SMALL.number
    assert result.folded.final_host_part is not None
    assert "Conv" not in {n.op_type for n in onnx.load_from_string(result.folded.final_host_part).graph.node}
