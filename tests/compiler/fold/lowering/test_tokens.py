"""Tokens: products over any number of rows, heads, and movement between their forms equal onnxruntime."""

import random

import numpy as np
import pytest

from intloom.compiler.schedule import compile_graph
from intloom.hw.spec.isa import BY_KIND, Kind
from intloom.hw.spec.params import preset
from intloom.sim.backend import GoldenBackend, RtlBackend
from intloom.sim.compare import compare
from tests.compiler.fold.lowering.test_matmul import moved, product, reshaped
from tests.compiler.fold.lowering.test_norm import norm
from tests.support.lowered import WITH_SOFTMAX, compared, kinds
from tests.support.nightly import with_nightly
from tests.support.onnx_maker import OnnxMaker, Value
from tests.support.parity import graph_inputs, random_feeds

HARDWARE = WITH_SOFTMAX.replace(vector_multiply=True, vector_average=True)


def transposed(m: OnnxMaker, x: Value, *order: int) -> Value:
    return moved(m, "Transpose", x, tuple(x.shape[a] for a in order), perm=list(order))


def patches(m: OnnxMaker, channels: int, side: tuple[int, int]) -> Value:
    """Tokens [1, T, C] of an image."""
    x = m.conv(m.image(3, *side), channels, kernel=1)
    return transposed(m, reshaped(m, x, (1, channels, side[0] * side[1])), 0, 2, 1)


def linear(m: OnnxMaker, x: Value, channels: int, form: str = "MatMul") -> Value:
    """A product with constant weights: a MatMul, or a Gemm with bias on a matrix of all rows."""
    rows, shape = int(np.prod(x.shape[:-1])), (*x.shape[:-1], channels)
    weight, scales = m.weights((x.shape[-1], channels) if form != "GemmT" else (channels, x.shape[-1]), form != "GemmT")
    scale = float(np.float32(x.scale * 74 * 74 * scales.mean() * x.shape[-1] ** 0.5 / 64))
    if form == "MatMul":
        return m.pair(m.node("MatMul", [x.name, weight])[0], shape, scale)
    matrix = reshaped(m, x, (rows, x.shape[-1]))
    inputs = [matrix.name, weight, m.bias(scales, x.scale)]
    (value,) = m.node("Gemm", inputs, transB=int(form == "GemmT"))
    return reshaped(m, m.pair(value, (rows, channels), scale), shape)


def attention(m: OnnxMaker, x: Value, heads: int, form: str, joined: bool, mask: Value | None = None) -> Value:
    """Queries, keys and values from one product that is split, or from three."""
    batch, tokens, channels = x.shape
    width = channels // heads
    if joined:
        y = reshaped(m, linear(m, x, 3 * channels, form), (batch, tokens, 3, heads, width))
        y = transposed(m, y, 2, 0, 3, 1, 4)
        q, k, v = (
            m.pair(
                m.node("Gather", [y.name, m.constant(np.array(i))], axis=0)[0], (batch, heads, tokens, width), y.scale
            )
            for i in range(3)
        )
    else:
        q, k, v = (
            transposed(m, reshaped(m, linear(m, x, channels, form), (batch, tokens, heads, width)), 0, 2, 1, 3)
            for _ in range(3)
        )
    scores = product(m, q, transposed(m, k, 0, 1, 3, 2), 1.0)
    if mask is not None:
        scores = m.binary("Add", scores, mask)
    weights = m.pair(m.node("Softmax", [scores.name], axis=-1)[0], scores.shape, 1 / 256, 0)
    y = transposed(m, product(m, weights, v, 0.2), 0, 2, 1, 3)
    return linear(m, reshaped(m, y, x.shape), channels, form)


@pytest.mark.parametrize("given", [True, False])
def test_a_mask_is_broadcast_over_heads_and_queries(given: bool, rng: random.Random) -> None:
    """An input of the model, or a constant."""
    m = OnnxMaker(rng)
    x = patches(m, 16, (2, 4))
    mask = reshaped(m, m.image(1, 1, 8), (1, 1, 1, 8)) if given else constant(m, (1, 1, 1, 8), 1 / 255)
    m.output(linear(m, attention(m, x, 2, "MatMul", joined=False, mask=mask), 8))
    found = compared(m, rng.getrandbits(32), HARDWARE)
    assert not [a for a in found.folded.assignments if a.target == "host"]


@pytest.mark.parametrize("form", ["MatMul", "Gemm", "GemmT"])
@pytest.mark.parametrize(("side", "widths"), [((1, 5), (8, 12)), ((2, 3), (16, 5)), ((4, 4), (7, 24))])
def test_products_of_rows(side: tuple[int, int], widths: tuple[int, int], form: str, rng: random.Random) -> None:
    m = OnnxMaker(rng)
    x = patches(m, widths[0], side)
    y = m.unary("Sigmoid", linear(m, x, widths[1], form), 1 / 255)
    m.output(linear(m, y, widths[0], form), x)
    assert "MatMul" in kinds(compared(m, rng.getrandbits(32)))  # the transposition at the end


@pytest.mark.parametrize("joined", [True, False])
@pytest.mark.parametrize(("heads", "width", "side"), [(1, 8, (1, 6)), (2, 8, (3, 3)), (3, 16, (4, 4))])
def test_a_block_of_attention(heads: int, width: int, side: tuple[int, int], joined: bool, rng: random.Random) -> None:
    m = OnnxMaker(rng)
    x = patches(m, heads * width, side)
    position = m.constant(np.random.default_rng(rng.getrandbits(32)).integers(0, 255, x.shape[1:]).astype(np.uint8))
    scale, zero = m.constant(np.float32(x.scale / 4)), m.constant(np.uint8(m.zero_point()))
    x = m.binary("Add", x, Value(m.node("DequantizeLinear", [position, scale, zero])[0], x.shape, x.scale / 4))
    x = m.binary("Add", x, attention(m, x, heads, rng.choice(["MatMul", "Gemm", "GemmT"]), joined))
    (mean,) = m.node("ReduceMean", [x.name], axes=[1], keepdims=0)
    m.output(m.pair(mean, (1, heads * width), x.scale / 2))
    found = compared(m, rng.getrandbits(32), HARDWARE)
    assert not [a for a in found.folded.assignments if a.target == "host"]


@pytest.mark.parametrize("form", ["MatMul", "GemmT"])
@pytest.mark.parametrize(
    ("split", "order", "side"),
    [
        ((1, 12, 3, 9), (0, 3, 1, 2), (3, 9)),
        ((1, 12, 4, 7), (0, 2, 3, 1), (4, 7)),
        ((1, 12, 2, 2, 3, 2), (0, 2, 4, 3, 5, 1), (4, 6)),
        ((1, 12, 2, 3, 2, 4), (0, 2, 4, 1, 3, 5), (6, 8)),
    ],
    ids=["columns", "rows", "patches of 2x2", "patches of 3x4"],
)
def test_products_of_windows(
    split: tuple[int, ...], order: tuple[int, ...], side: tuple[int, int], form: str, rng: random.Random
) -> None:
    """Rows, columns or patches of an image become rows of a sequence: a convolution over them."""
    m = OnnxMaker(rng)
    x = transposed(m, reshaped(m, m.conv(m.image(3, *side), 12, kernel=1), split), *order)
    count = {3: side[1], 2: side[0]}[order[1]] if len(split) == 4 else split[2] * split[4]
    y = reshaped(m, x, (1, count, 12 * side[0] * side[1] // count))
    m.output(linear(m, m.unary("Sigmoid", linear(m, y, 20, form), 1 / 255), 8))
    found = compared(m, rng.getrandbits(32))
    assert not [a for a in found.folded.assignments if a.target == "host"]
    assert kinds(found)[:3] == ["Conv"] * 3


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nano", "base"])
def test_products_of_windows_in_rtl(name: str, rng: random.Random) -> None:
    m = OnnxMaker(rng)
    x = m.conv(m.image(3, 3, 9), 12, kernel=1)
    m.output(linear(m, reshaped(m, transposed(m, x, 0, 3, 1, 2), (1, 9, 36)), 20))
    seed = rng.getrandbits(32)
    found = compared(m, seed)
    inputs = graph_inputs(found.folded, random_feeds(m.model(), seed))
    program = compile_graph(found.folded.graph, preset(name))
    golden, rtl = (b.run(program, inputs) for b in (GoldenBackend(found.folded.graph), RtlBackend()))
    compare(golden.outputs, rtl.outputs).require_equal()


def constant(m: OnnxMaker, shape: tuple[int, ...], scale: float) -> Value:
    stored = np.random.default_rng(m.rng.getrandbits(32)).integers(0, 255, shape, endpoint=True).astype(np.uint8)
    names = [m.constant(stored), m.constant(np.float32(scale)), m.constant(np.uint8(m.zero_point()))]
    return Value(m.node("DequantizeLinear", names)[0], shape, scale)


@pytest.mark.parametrize("pick", ["Gather", "Slice"])
@pytest.mark.parametrize(("side", "channels"), [((1, 5), 8), ((4, 5), 12), ((3, 7), 16)])
def test_class_tokens_and_positions(side: tuple[int, int], channels: int, pick: str, rng: random.Random) -> None:
    """A constant row is joined, constants are added, and one row is the feature."""
    m, tokens = OnnxMaker(rng), side[0] * side[1] + 1
    x = patches(m, channels, side)
    parts = [constant(m, (1, 1, channels), x.scale / 2), x]
    rng.shuffle(parts)
    (value,) = m.node("Concat", [p.name for p in parts], axis=1)
    x = m.pair(value, (1, tokens, channels), x.scale * 1.1)
    x = m.binary("Add", x, constant(m, (tokens, channels), x.scale / 4))
    x = m.binary("Add", linear(m, x, channels), constant(m, (channels,), x.scale))
    at = rng.randrange(tokens)
    if pick == "Gather":
        row = moved(m, "Gather", x, (1, channels), m.constant(np.array(at)), axis=1)
    else:
        bounds = [m.constant(np.array([v])) for v in (at, at + 1, 1)]
        row = moved(m, "Slice", x, (1, 1, channels), *bounds)
    m.output(linear(m, row, 5))
    found = compared(m, rng.getrandbits(32))
    assert not [a for a in found.folded.assignments if a.target == "host"]


@pytest.mark.parametrize("axis", [1, 2])
def test_joined_tokens(axis: int, rng: random.Random) -> None:
    m = OnnxMaker(rng)
    x = patches(m, 12, (3, 4))
    parts = [linear(m, x, 8), m.unary("Sigmoid", linear(m, x, 8), 1 / 255)]
    shape = (1, 24, 8) if axis == 1 else (1, 12, 16)
    y = m.pair(m.node("Concat", [p.name for p in parts], axis=axis)[0], shape, 1 / 100)
    m.output(linear(m, y, 5))
    found = compared(m, rng.getrandbits(32))
    assert not [a for a in found.folded.assignments if a.target == "host"]


def unfolded(m: OnnxMaker, x: Value, patch: tuple[int, int]) -> Value:
    """An image as a matrix of each position in a patch: [positions, patches, channels], as MobileViT has it."""
    _, channels, *side = x.shape
    down, right = side[0] // patch[0], side[1] // patch[1]
    x = transposed(m, reshaped(m, x, (channels * down, patch[0], right, patch[1])), 0, 2, 1, 3)
    x = transposed(m, reshaped(m, x, (1, channels, down * right, patch[0] * patch[1])), 0, 3, 2, 1)
    return reshaped(m, x, (patch[0] * patch[1], down * right, channels))


def folded(m: OnnxMaker, x: Value, patch: tuple[int, int], side: tuple[int, int]) -> Value:
    """The inverse of `unfolded`."""
    positions, patches, channels = x.shape
    down, right = side[0] // patch[0], side[1] // patch[1]
    x = transposed(m, reshaped(m, x, (1, positions, patches, channels)), 0, 3, 2, 1)
    x = transposed(m, reshaped(m, x, (channels * down, right, *patch)), 0, 2, 1, 3)
    return reshaped(m, x, (1, channels, *side))


@pytest.mark.parametrize(
    ("patch", "heads", "side"), [((2, 2), 2, (4, 6)), ((1, 2), 1, (3, 4)), ((2, 3), 3, (4, 9)), ((4, 1), 1, (8, 2))]
)
def test_attention_of_every_nth_pixel(
    patch: tuple[int, int], heads: int, side: tuple[int, int], rng: random.Random
) -> None:
    """Heads of each position in a patch; the results become an image again."""
    m, channels = OnnxMaker(rng), 4 * heads * rng.choice((1, 2, 5))
    x = unfolded(m, m.conv(m.image(3, *side), channels, kernel=1), patch)
    y = m.binary("Add", x, attention(m, x, heads, "MatMul", joined=True))
    m.output(m.conv(folded(m, y, patch, side), 5, kernel=1))
    found = compared(m, rng.getrandbits(32), HARDWARE)
    assert not [a for a in found.folded.assignments if a.target == "host"]


def test_a_sum_that_tables_correct_has_the_order_of_its_operands(rng: random.Random) -> None:
    """With scales whose ties onnxruntime rounds irregularly."""
    m, patch, side = OnnxMaker(rng), (1, 2), (3, 4)
    one, two = (unfolded(m, m.image(4, *side, zero, scale), patch) for scale, zero in ((0.08, 3), (0.055, 7)))
    total = m.pair(m.node("Add", [one.name, two.name])[0], one.shape, 0.05, 200)
    m.output(m.conv(folded(m, total, patch, side), 5, kernel=1))
    found = compared(m, rng.getrandbits(32))
    assert "corrected by tables" in next(a.reason for a in found.folded.assignments if a.op == "Add")


@pytest.mark.parametrize("clamped", [False, True])
def test_batch_normalization_of_tokens(clamped: bool, rng: random.Random) -> None:
    """As of LeViT: a matrix with a row for each token is no batch."""
    m = OnnxMaker(rng)
    x = patches(m, 16, (3, 4))
    noise = np.random.default_rng(rng.getrandbits(32))
    rows = reshaped(m, linear(m, x, 24), (12, 24))
    constants = [m.constant(noise.uniform(0.5, 1.5, 24).astype(np.float32)) for _ in range(4)]
    (value,) = m.node("BatchNormalization", [rows.name, *constants])
    (value,) = m.node("Relu", [value]) if clamped else (value,)
    rows = m.pair(value, rows.shape, rows.scale * 1.3)
    m.output(m.binary("Add", x, linear(m, reshaped(m, rows, (1, 12, 24)), 16)))
    found = compared(m, rng.getrandbits(32), HARDWARE)
    assert not [a for a in found.folded.assignments if a.target == "host"]


def test_many_matrices_of_many_rows(rng: random.Random) -> None:
    """As of TNT: two convolutions select each matrix; the second one of matrix 1 is not matrix 11."""
    m = OnnxMaker(rng)
    x = linear(m, reshaped(m, patches(m, 8, (16, 16)), (16, 16, 8)), 8)
    m.output(linear(m, reshaped(m, x, (1, 256, 8)), 4))
    compared(m, rng.getrandbits(32), HARDWARE)


def test_rows_of_heads_that_are_rows_of_pixels(rng: random.Random) -> None:
    """As of BoTNet's positions: a head has a matrix for each row of its image, and all of them are its pixels."""
    m = OnnxMaker(rng)
    heads = transposed(m, reshaped(m, m.conv(m.image(3, 4, 8), 32, kernel=1), (2, 16, 32)), 0, 2, 1)
    y = linear(m, reshaped(m, heads, (2, 4, 8, 16)), 8)
    m.output(linear(m, reshaped(m, transposed(m, y, 1, 2, 0, 3), (1, 32, 16)), 8))
    assert kinds(compared(m, rng.getrandbits(32), HARDWARE)).count("Conv") == 4


def test_tokens_are_mixed_and_added(rng: random.Random) -> None:
    """As of ResMLP: channels, of which there are four times as many as tokens, are rows of one matrix."""
    m = OnnxMaker(rng)
    x = patches(m, 64, (4, 4))
    y = transposed(m, linear(m, transposed(m, x, 0, 2, 1), 16), 0, 2, 1)
    m.output(linear(m, m.binary("Add", x, y), 8))
    compared(m, rng.getrandbits(32), HARDWARE)


def test_a_batch_of_single_rows_stays_where_it_is(rng: random.Random) -> None:
    """[tokens, 1, channels], as recurrent networks have them: no matrix needs a tensor of its own."""
    m = OnnxMaker(rng)
    m.output(linear(m, transposed(m, patches(m, 8, (2, 3)), 1, 0, 2), 5))
    assert kinds(compared(m, rng.getrandbits(32))).count("Conv") == 2


def test_a_product_with_a_vector(rng: random.Random) -> None:
    """As the mean of a distribution over distances: the result has no axis of channels."""
    m = OnnxMaker(rng)
    x = patches(m, 9, (4, 3))
    names = [m.constant(np.arange(-4, 5, dtype=np.int8)), m.constant(np.float32(0.1)), m.constant(np.int8(0))]
    (value,) = m.node("MatMul", [x.name, m.node("DequantizeLinear", names)[0]])
    m.output(m.pair(value, (1, 12), x.scale))
    assert kinds(compared(m, rng.getrandbits(32))) == ["Conv", "Conv"]


def test_an_image_that_is_transposed_before_it_is_flattened(rng: random.Random) -> None:
    """The order of values is folded into the weights."""
    m = OnnxMaker(rng)
    x = transposed(m, m.conv(m.image(3, 4, 5), 6), 0, 2, 3, 1)
    m.output(linear(m, reshaped(m, x, (1, 120)), 7))
    assert kinds(compared(m, rng.getrandbits(32))) == ["Conv", "Conv"]


def test_a_convolution_over_tokens(rng: random.Random) -> None:
    """As of a conformer: the tokens of an input lie in an image of several rows, and a sequence has one."""
    m = OnnxMaker(rng)
    x = linear(m, reshaped(m, m.image(12, 1, 7), (1, 12, 7)), 9)
    m.output(m.conv(reshaped(m, transposed(m, x, 0, 2, 1), (1, 9, 1, 12)), 4))
    assert kinds(compared(m, rng.getrandbits(32))).count("MatMul") == 3


def test_a_large_output_leaves_in_its_own_order(rng: random.Random) -> None:
    """Rows of more channels than a transposition takes, as those of a recognizer's characters: the host moves them."""
    m = OnnxMaker(rng)
    m.output(linear(m, linear(m, patches(m, 8, (1, 3)), 8), 1025))
    found = compared(m, rng.getrandbits(32))
    assert not [a for a in found.folded.assignments if a.target == "host"]
    (quant,) = found.folded.output_quant.values()
    assert quant.positions is not None and found.folded.graph.tensors[quant.name].channels == 1025


@pytest.mark.slow
@pytest.mark.parametrize("name", with_nightly(["nano", "small", "base", "large"], ["nano", "base", "large"]))
def test_an_encoder_on_every_level(name: str, rng: random.Random) -> None:
    """On arrays of 4x4 to 32x32: heads, two normalizations, and a Softmax over 1,020 or 1,024 values."""
    params = preset(name)
    if not params.vector_norm:
        params = params.replace(
            vector_softmax=True, vector_norm=True, vector_lanes=2, weight_sums=True, vector_multiply=True
        )
    m = OnnxMaker(rng)
    x = patches(m, 16, rng.choice(((2, 3), (1, 5), (2, 4))))
    form = rng.choice(("MatMul", "Gemm", "GemmT"))
    y = attention(m, norm(m, "LayerNormalization", x, -1), rng.choice((1, 2, 4)), form, joined=rng.random() < 0.5)
    x = norm(m, "LayerNormalization", m.binary("Add", x, y), -1)
    wide = linear(m, x, min(1024, params.rows * BY_KIND[Kind.VSOFTMAX].field("blocks").maximum))
    wide = m.pair(m.node("Softmax", [wide.name], axis=-1)[0], wide.shape, 1 / 256, 0)
    m.output(linear(m, wide, 8))
    seed = rng.getrandbits(32)
    found = compared(m, seed, params)
    assert not [a for a in found.folded.assignments if a.target == "host"]
    inputs = graph_inputs(found.folded, random_feeds(m.model(), seed))
    program = compile_graph(found.folded.graph, params)
    golden, rtl = (b.run(program, inputs) for b in (GoldenBackend(found.folded.graph), RtlBackend()))
    compare(golden.outputs, rtl.outputs).require_equal()
