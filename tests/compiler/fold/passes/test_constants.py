"""Shape chains, computed weights and scales: what depends on constants and sizes only is computed at compile time."""

import random

import numpy as np
import onnx
import onnxslim
import pytest
from onnx import TensorProto, helper

from intloom.compiler.fold.passes.constants import fold_constants
from intloom.compiler.fold.target import Target
from intloom.compiler.frontend import fold_model
from intloom.compiler.importer import from_proto
from tests.support.onnx_maker import TYPES, OnnxMaker, Value
from tests.support.parity import assert_equal, folded

FIRST = np.array([0])


def sizes(m: OnnxMaker, value: str, first: int, last: int) -> str:
    """Some sizes of a value, as PyTorch writes them: Shape, Slice."""
    (shape,) = m.node("Shape", [value])
    return m.node("Slice", [shape, *(m.constant(np.array([n])) for n in (first, last)), m.constant(FIRST)])[0]


def flat(m: OnnxMaker, x: Value) -> Value:
    """[batch, -1] from the batch size."""
    (size,) = m.node("Gather", [m.node("Shape", [x.name])[0], m.constant(np.array(0))], axis=0)
    (batch,) = m.node("Unsqueeze", [size, m.constant(FIRST)])
    (wanted,) = m.node("Concat", [batch, m.constant(np.array([-1]))], axis=0)
    return Value(m.node("Reshape", [x.name, wanted])[0], (1, int(np.prod(x.shape))), x.scale)


def doubled(m: OnnxMaker, x: Value) -> Value:
    """A Resize whose sizes are computed through floats: Cast, Mul, Floor, Cast, Concat."""
    (real,) = m.node("Cast", [sizes(m, x.name, 2, 4)], to=TensorProto.FLOAT)
    (scaled,) = m.node("Floor", m.node("Mul", [real, m.constant(np.float32(2.01))]))
    (wanted,) = m.node("Cast", [scaled], to=TensorProto.INT64)
    (wanted,) = m.node("Concat", [sizes(m, x.name, 0, 2), wanted], axis=0)
    modes = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    (value,) = m.node("Resize", [x.name, "", "", wanted], **modes)
    return m.pair(value, (*x.shape[:2], 2 * x.shape[2], 2 * x.shape[3]), x.scale)


def network(seed: int, *forms: str) -> onnx.ModelProto:
    m = OnnxMaker(random.Random(seed))
    x = m.conv(m.image(3, 6, 5), 8)
    if "resize" in forms:
        x = m.conv(doubled(m, x), 8)
    if "flat" in forms:
        x = flat(m, x)
        weight, _ = m.weights((x.shape[1], 7), 1)
        x = m.pair(m.node("Gemm", [x.name, weight])[0], (1, 7), 1.0)
    m.output(x)
    return m.model()


@pytest.mark.parametrize("forms", [("resize",), ("flat",), ("resize", "flat")])
def test_shape_chains_become_constant(forms: tuple[str, ...], seed: int) -> None:
    model = network(seed, *forms)
    found = assert_equal(model, seed).folded
    assert len(found.regions) == 1
    assert not [a for a in found.assignments if a.target in (Target.HOST, Target.UNSUPPORTED)]
    assert {a.reason for a in found.assignments if a.op in ("Shape", "Cast", "Floor")} == {
        "computed at compile time: its result is constant"
    }
    slim = fold_model(from_proto(onnxslim.slim(model), name="slim"))
    assert [type(n) for n in slim.whole.nodes] == [type(n) for n in found.whole.nodes]
    assert len(slim.regions) == len(found.regions)


def test_computed_weights_become_constant(seed: int) -> None:
    """Transposed and scaled float weights, quantized in the file."""
    m = OnnxMaker(random.Random(seed))
    x = m.image(3, 6, 6)
    noise = np.random.default_rng(seed)
    (turned,) = m.node("Transpose", [m.constant(noise.normal(size=(3, 8, 1, 1)).astype(np.float32))], perm=[1, 0, 2, 3])
    (scaled,) = m.node("Mul", [turned, m.constant(np.float32(0.5))])
    names = [m.constant(np.float32(0.02)), m.constant(np.int8(0))]
    (stored,) = m.node("QuantizeLinear", [scaled, *names])
    (weight,) = m.node("DequantizeLinear", [stored, *names])
    m.output(m.pair(m.node("Conv", [x.name, weight])[0], (1, 8, 6, 6), 0.02))
    found = assert_equal(m.model(), seed).folded
    assert len(found.regions) == 1
    assert found.final_host_part is None


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_a_cast_to_its_own_type_is_an_identity(seed: int, dtype: str) -> None:
    """PyTorch exports its own quantization as QuantizeLinear, Cast, DequantizeLinear."""
    m = OnnxMaker(random.Random(seed), dtype=dtype)
    m.output(m.conv(m.conv(m.image(3, 6, 6), 8), 4))
    model = m.model()
    quantized = [n.output[0] for n in model.graph.node if n.op_type == "QuantizeLinear"]
    for node in [n for n in model.graph.node if n.op_type == "DequantizeLinear" and n.input[0] in quantized]:
        cast = helper.make_node("Cast", [node.input[0]], [f"{node.input[0]}/cast"], to=TYPES[dtype][1])
        node.input[0] = cast.output[0]
        model.graph.node.insert(list(model.graph.node).index(node), cast)
    found = assert_equal(model, seed).folded
    assert not [a for a in found.assignments if a.target in (Target.HOST, Target.UNSUPPORTED)]


@pytest.mark.parametrize("quantized", [True, False])
def test_a_quantized_value_is_never_nan(seed: int, quantized: bool) -> None:
    """PyTorch exports scaled_dot_product_attention with a Where for rows that a mask hides whole."""
    m = OnnxMaker(random.Random(seed))
    x = m.conv(m.image(3, 6, 8), 8)
    (name,) = m.node("Softmax", [x.name], axis=1)
    if quantized:
        name = m.pair(name, x.shape, 1 / 256, 0).name
    (value,) = m.node("Where", [*m.node("IsNaN", [name]), m.constant(np.float32(0)), name])
    m.output(m.conv(m.pair(value, x.shape, 1 / 256, 0), 4))
    model = m.model()
    found = assert_equal(model, seed, folded(model, softmax=True)).folded
    assert not [a for a in found.assignments if a.target in (Target.HOST, Target.UNSUPPORTED)]


def test_random_and_large_results_are_not_computed(seed: int) -> None:
    m = OnnxMaker(random.Random(seed))
    x = m.conv(m.image(3, 6, 6), 8)
    (noise,) = m.node("RandomUniform", [], shape=[1, 8, 6, 6])
    (large,) = m.node("ConstantOfShape", [m.constant(np.array([1 << 12, 1 << 12]))])
    (total,) = m.node("ReduceSum", [large], keepdims=0)
    (value,) = m.node("Add", [x.name, m.node("Add", [noise, total])[0]])
    m.output(m.pair(value, x.shape, x.scale))
    folded = fold_constants(from_proto(m.model(), name="m"))
    assert {"RandomUniform", "ConstantOfShape"} <= {n.op for n in folded.nodes}


def test_what_moves_quantized_constants_is_computed(rng, seed: int) -> None:
    """Equal biases are Identity nodes in TorchScript's exports, and embeddings of positions a Gather."""
    m = OnnxMaker(rng)
    x = m.image(4, 6, 6, 100)
    (stored,), (scale,) = (
        [m.constant(np.arange(90, 110).reshape(5, 4).astype(np.uint8))],
        [m.constant(np.float32(1 / 99))],
    )
    (table,) = m.node("DequantizeLinear", [stored, scale, m.constant(np.uint8(100))])
    (row,) = m.node("Gather", [*m.node("Identity", [table]), m.constant(np.array(2))], axis=0)
    bias = m.pair(*m.node("Reshape", [row, m.constant(np.array([1, 4, 1, 1]))]), (1, 4, 1, 1), 1 / 37)
    m.output(m.binary("Add", x, bias))
    found = assert_equal(m.model(), seed)
    assert {a.target for a in found.folded.assignments} <= {Target.PLACEMENT, Target.ARRAY, Target.VECTOR}
