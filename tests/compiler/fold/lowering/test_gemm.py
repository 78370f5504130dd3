"""Products with constants: of a flattened image, on either side, for each matrix, and images made of the result."""

import math

import numpy as np
import pytest
from onnx import TensorProto, helper

from intloom.common.errors import ModelError
from intloom.compiler.fold.target import Target
from intloom.compiler.frontend import fold_model
from intloom.compiler.importer import from_proto
from tests.compiler.fold.lowering.test_matmul import reshaped
from tests.compiler.fold.lowering.test_tokens import linear, patches, transposed
from tests.support.lowered import compared, kinds
from tests.support.onnx_maker import OnnxMaker


@pytest.mark.parametrize("size", [26, 28])
def test_a_reshape_to_another_number_of_values_is_an_error_of_the_model(size, rng):
    m = OnnxMaker(rng)
    x = m.image(3, 3, 3)
    (row,) = m.node("Reshape", [x.name, m.constant(np.array([1, size], np.int64))])
    flat = m.pair(row, (1, size), x.scale, 0)
    weight, _ = m.weights((size, 4), 1)
    (value,) = m.node("Gemm", [flat.name, weight])
    m.output(m.pair(value, (1, 4), 0.05))
    with pytest.raises(ModelError, match=f"Reshape_node.* 27 values, .* {size} values"):
        fold_model(from_proto(m.model(), name="m"))


@pytest.mark.parametrize(
    ("shape", "channels_last", "steps"),
    [((5, 4, 4), False, 2), ((40, 1, 4), False, 1), ((2, 7, 7), False, 2), ((6, 4, 3), True, 2), ((3, 15, 1), True, 1)],
)
def test_a_vector_becomes_an_image(shape, channels_last, steps, rng, seed):
    """As at the start of a decoder: channels of the only pixel are spread over rows, then over columns."""
    m = OnnxMaker(rng)
    x = m.image(20, 1, 1, 9)
    row = m.pair(*m.node("Flatten", [x.name]), (1, 20), x.scale, 9)
    weight, scales = m.weights((math.prod(shape), 20), 0)
    (value,) = m.node("Gemm", [row.name, weight, m.bias(scales, row.scale)], transB=1)
    flat = m.pair(value, (1, math.prod(shape)), row.scale * 20, 100)
    size = (1, *shape[1:], shape[0]) if channels_last else (1, *shape)
    image = m.pair(*m.node("Reshape", [flat.name, m.constant(np.array(size))]), size, flat.scale, 100)
    if channels_last:
        (turned,) = m.node("Transpose", [image.name], perm=[0, 3, 1, 2])
        image = m.pair(turned, (1, *shape), flat.scale, 100)
    m.output(m.conv(image, 6))
    found = compared(m, seed)
    assert kinds(found).count("ConvTranspose") == steps
    assert len(found.folded.regions) == 1


def test_a_large_image_of_a_vector_stays_with_the_host(rng):
    m = OnnxMaker(rng)
    row = m.pair(*m.node("Flatten", [m.conv(m.image(3, 1, 1), 256, 1).name]), (1, 256), 0.1)
    (value,) = m.node("Reshape", [row.name, m.constant(np.array((1, 1, 16, 16)))])
    m.output(m.conv(m.pair(value, (1, 1, 16, 16), 0.1), 6))
    assignment = [a for a in fold_model(from_proto(m.model(), name="m")).assignments if a.op == "Conv"][-1]
    assert (assignment.target, assignment.row) == (Target.HOST, 18)


def stack(m: OnnxMaker, shape: tuple[int, ...], kind: type[np.generic]) -> tuple[str, float]:
    """Constant matrices with one scale."""
    info, noise = np.iinfo(kind), np.random.default_rng(m.rng.getrandbits(32))
    values = noise.integers(info.min, info.max, shape, endpoint=True).astype(kind)
    zero = kind(0 if kind is np.int8 else m.rng.randrange(256))
    names = [m.constant(values), m.constant(np.float32(0.01)), m.constant(zero)]
    return m.node("DequantizeLinear", names)[0], 0.01


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("kind", [np.uint8, np.int8])
@pytest.mark.parametrize(
    ("form", "left"),
    [
        ((1, 6, 10), (5, 6)), ((1, 6, 1), (5, 6)), ((1, 6, 10), (6,)), ((1, 1, 6, 10), (1, 1, 5, 6)),
        ((1, 3, 2, 10), (1, 3, 5, 2)), ((1, 3, 2, 10), (5, 2)), ((1, 1, 6, 10), (4, 6)),
    ],
)  # fmt: skip
def test_constants_multiply_from_the_left(form, left, kind, dtype, rng, seed):
    """Columns are pixels: for all matrices alike, or with constants for each."""
    m = OnnxMaker(rng, dtype=dtype)
    channels = math.prod(form[1:-1])
    x = m.conv(m.image(3, 1, form[-1]), channels, kernel=1)
    x = m.pair(*m.node("Reshape", [x.name, m.constant(np.array(form))]), form, x.scale, 3)
    weight, scale = stack(m, left, kind)
    (value,) = m.node("MatMul", [weight, x.name])
    shape = (*form[:-2], *left[-2:-1], form[-1])
    y = m.pair(value, shape, float(np.float32(x.scale * scale * 5000 * form[-2] ** 0.5 / 128)))
    m.output(m.unary("Sigmoid", y, 1 / 255))
    found = compared(m, seed)
    assert all(a.target != Target.HOST for a in found.folded.assignments if a.op == "MatMul")
    assert "MatMul" not in kinds(found)


@pytest.mark.parametrize("tokens", [5, 12])
def test_constants_mix_tokens(tokens, rng, seed):
    """As the product of a graph's adjacency with its nodes: values are transposed once."""
    m = OnnxMaker(rng)
    x = transposed(m, reshaped(m, m.conv(m.image(3, 1, tokens), 8, kernel=1), (1, 8, tokens)), 0, 2, 1)
    weight, scale = stack(m, (7, tokens), np.int8)
    y = m.pair(*m.node("MatMul", [weight, x.name]), (1, 7, 8), float(np.float32(x.scale * scale * 100 * tokens**0.5)))
    m.output(linear(m, y, 4))
    # Before and after, and of the output.
    assert kinds(compared(m, seed)).count("MatMul") == 3


@pytest.mark.parametrize("width", [4, 9])
def test_heads_are_multiplied_by_matrices_of_their_own(width, rng, seed):
    m = OnnxMaker(rng)
    x = transposed(m, reshaped(m, patches(m, 3 * 8, (2, 3)), (1, 6, 3, 8)), 0, 2, 1, 3)
    weight, scale = stack(m, (3, 8, width), np.int8)
    y = m.pair(*m.node("MatMul", [x.name, weight]), (1, 3, 6, width), float(np.float32(x.scale * scale * 300)))
    m.output(linear(m, reshaped(m, transposed(m, y, 0, 2, 1, 3), (1, 6, 3 * width)), 4))
    found = compared(m, seed)
    assert not [a for a in found.folded.assignments if a.target is Target.HOST]


@pytest.mark.parametrize(("left", "right"), [((2, 5, 18), (1, 1, 18, 8)), ((3, 1, 5, 6), (1, 3, 6, 8))])
def test_matrices_that_are_repeated_stay_with_the_host(left, right, rng):
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 1, 8), 18, kernel=1)
    x = m.pair(*m.node("Reshape", [x.name, m.constant(np.array(right))]), right, x.scale, 3)
    weight, _ = stack(m, left, np.int8)
    m.output(m.pair(*m.node("MatMul", [weight, x.name]), (1,), 1.0))
    (made,) = [a for a in fold_model(from_proto(m.model(), name="m")).assignments if a.op == "MatMul"]
    assert (made.target, made.row) == (Target.HOST, 17)


def test_a_left_operand_of_four_bits(rng, seed):
    m = OnnxMaker(rng, opset=21)
    x = reshaped(m, m.conv(m.image(3, 1, 10), 6, kernel=1), (1, 6, 10))
    values = np.random.default_rng(seed).integers(-8, 8, (5, 6)).ravel()
    for name, given, shape in (("weight4", values, (5, 6)), ("zero4", [0], ())):
        m.stored.append(helper.make_tensor(name, TensorProto.INT4, shape, given))
    (weight,) = m.node("DequantizeLinear", ["weight4", m.constant(np.float32(0.1)), "zero4"])
    m.output(m.pair(*m.node("MatMul", [weight, x.name]), (1, 5, 10), float(np.float32(x.scale * 5))))
    assert kinds(compared(m, seed)) == ["Conv", "Conv"]
