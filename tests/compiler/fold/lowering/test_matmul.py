"""Products of two activations: equal to onnxruntime for random sizes, zero points and orders of the operands."""

import random
from collections.abc import Callable

import numpy as np
import pytest

from intloom.compiler.fold.target import Target
from intloom.compiler.schedule import compile_graph
from intloom.flow.host import HostSide
from intloom.flow.regions import run_regions
from intloom.hw.spec.params import preset
from intloom.sim.result import Arrays
from tests.support.golden import assert_golden
from tests.support.lowered import compared, kinds
from tests.support.onnx_maker import TYPES, OnnxMaker, Value
from tests.support.parity import assert_equal, folded, random_feeds

SIDES = [(1, 4), (3, 3), (4, 5), (6, 6), (2, 8)]


def moved(m: OnnxMaker, op: str, x: Value, shape: tuple[int, ...], *more: str, **attributes: object) -> Value:
    """A movement operator without a pair, which the importer adds."""
    (name,) = m.node(op, [x.name, *more], **attributes)
    return Value(name, shape, x.scale)


def reshaped(m: OnnxMaker, x: Value, shape: tuple[int, ...]) -> Value:
    return moved(m, "Reshape", x, shape, m.constant(np.array(shape, np.int64)))


def turned(m: OnnxMaker, x: Value) -> Value:
    batch, heads, rows, columns = x.shape
    return moved(m, "Transpose", x, (batch, heads, columns, rows), perm=[0, 1, 3, 2])


def product(m: OnnxMaker, a: Value, b: Value, spread: float) -> Value:
    """A product whose scale keeps its values in range."""
    (name,) = m.node("MatMul", [a.name, b.name])
    scale = a.scale * b.scale * 74 * 74 * a.shape[-1] ** 0.5 * spread / 128
    return m.pair(name, (*a.shape[:3], b.shape[3]), float(np.float32(scale)))


def attention(
    m: OnnxMaker,
    heads: int,
    key: int,
    width: int,
    side: tuple[int, int],
    softmax: bool = False,
    weigh: Callable[[Value], Value] | None = None,
) -> Value:
    """The attention of YOLO11's blocks, with another function, a sigmoid or the softmax."""
    tokens = side[0] * side[1]
    y = m.conv(m.image(3, *side), heads * (2 * key + width), kernel=1)
    y = reshaped(m, y, (1, heads, 2 * key + width, tokens))
    sizes = [key, key, width]
    names = m.node("Split", [y.name, m.constant(np.array(sizes, np.int64))], [m.fresh("part") for _ in sizes], axis=2)
    q, k, v = (Value(n, (1, heads, s, tokens), y.scale) for n, s in zip(names, sizes, strict=True))
    scores = product(m, turned(m, q), k, 2)
    scale = m.pair(m.constant(np.float32(key**-0.5)), (), float(np.float32(key**-0.5)), 1)
    (scaled,) = m.node("Mul", [scores.name, scale.name])
    scores = m.pair(scaled, scores.shape, scores.scale * key**-0.5)
    zero = TYPES[m.dtype][2]
    if weigh is not None:
        weights = weigh(scores)
    elif softmax:
        (made,) = m.node("Softmax", [scores.name], axis=-1)
        weights = m.pair(made, scores.shape, 1 / 256, zero)
    else:
        weights = m.unary("Sigmoid", scores, 1 / 256)
    y = reshaped(m, product(m, v, turned(m, weights), 1), (1, heads * width, *side))
    v = reshaped(m, v, (1, heads * width, *side))
    return m.conv(m.concat([y, v]), 4, kernel=1)


@pytest.mark.parametrize("side", SIDES)
def test_attention_on_every_level(side: tuple[int, int], rng: random.Random, seed: int) -> None:
    m = OnnxMaker(rng)
    key = rng.choice([4, 8, 12])
    m.output(attention(m, rng.choice([1, 2, 3]), key, rng.choice([8, 16, 20]), side))
    assert kinds(compared(m, seed)).count("MatMul") >= 3


def test_attention_between_channels_on_every_level(rng: random.Random, seed: int) -> None:
    """As of XCiT and EdgeNeXt: rows of channels, divided by their length, and a temperature for each head."""
    m = OnnxMaker(rng)
    heads, width, side = rng.choice([2, 3]), rng.choice([5, 30]), rng.choice([(5, 5), (3, 7)])
    shape = (1, heads, width, side[0] * side[1])
    y = reshaped(m, m.conv(m.image(3, *side), 3 * heads * width, kernel=1), (3, *shape))
    q, k, v = (moved(m, "Gather", y, shape, m.constant(np.int64(n)), axis=0) for n in range(3))
    q, k = (m.pair(m.node("Div", [x.name, *m.node("ReduceL2", [x.name], axes=[3])])[0], shape, 0.01) for x in (q, k))
    scores = product(m, q, turned(m, k), 1)
    (heat,) = m.node("DequantizeLinear", [m.constant(np.arange(1, heads + 1, dtype=np.uint8).reshape(-1, 1, 1)),
                                          m.constant(np.float32(0.5)), m.constant(np.uint8(0))])  # fmt: skip
    scores = m.pair(*m.node("Mul", [scores.name, heat]), scores.shape, scores.scale * heads / 2)
    weights = m.pair(*m.node("Softmax", [scores.name], axis=-1), scores.shape, 1 / 256, 0)
    y = moved(m, "Transpose", product(m, weights, v, 1), (1, shape[3], heads, width), perm=[0, 3, 1, 2])
    y = moved(
        m, "Transpose", reshaped(m, y, (1, shape[3], heads * width)), (1, heads * width, shape[3]), perm=[0, 2, 1]
    )
    m.output(m.conv(reshaped(m, y, (1, heads * width, *side)), 4, kernel=1))
    assert kinds(compared(m, seed, preset("base"))).count("MatMul") == 4 * heads


@pytest.mark.parametrize("side", [(6, 6), (5, 9)])
def test_only_the_softmax_runs_on_the_host(side: tuple[int, int], rng: random.Random, seed: int) -> None:
    m = OnnxMaker(rng)
    m.output(attention(m, rng.choice([2, 3]), 16, 64, side, softmax=True))
    found = assert_equal(m.model(), seed)
    on_host = {a.op for a in found.folded.assignments if a.target is Target.HOST}
    assert on_host <= {"Softmax", "Transpose", "QuantizeLinear", "DequantizeLinear"}
    assert len(found.folded.regions) == 2


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("preset_name", ["base", "large"])
@pytest.mark.parametrize("op", ["Softmax", "Transpose"])
def test_sums_that_fill_no_words_after_the_host(
    op: str, preset_name: str, heads: int, rng: random.Random, seed: int
) -> None:
    """The transposed operand comes from an earlier region, so its other lanes are not known to be blank.

    After a Transpose, which the host does not run, the product itself is given the model's order for the host, or
    becomes an image where it has one head.
    """
    m = OnnxMaker(rng)
    width = 64
    values = reshaped(m, m.conv(m.image(3, 2, 2), heads * width, kernel=1), (1, heads, width, 4))
    scores = reshaped(m, m.conv(m.image(3, 2, 2), heads * 4, kernel=1), (1, heads, 4, 4))
    (name,) = m.node(op, [scores.name], **({"axis": -1} if op == "Softmax" else {"perm": [0, 1, 3, 2]}))
    y = product(m, values, m.pair(name, scores.shape, 1 / 256 if op == "Softmax" else scores.scale * 1.1, 0), 1)
    m.output(m.conv(reshaped(m, y, (1, heads * width, 2, 2)), width))
    found = assert_equal(m.model(), seed)
    assert len(found.folded.regions) == (1 if (op, heads) == ("Transpose", 1) else 2)
    folded, feeds = found.folded, random_feeds(m.model(), seed)

    def run(number: int, inputs: Arrays) -> Arrays:
        graph = folded.regions[number]
        return assert_golden(graph, compile_graph(graph, preset(preset_name)), inputs).outputs

    run_regions(folded, HostSide(folded), feeds, run)


def test_without_sums_of_weights_operands_with_a_zero_point_are_multiplied_on_the_host(
    rng: random.Random, seed: int
) -> None:
    m = OnnxMaker(rng)
    x, lowest = m.image(3, 2, 3), TYPES[m.dtype][2]
    a, b = (m.node("Sigmoid", [m.conv(x, 6, kernel=1).name])[0] for _ in range(2))
    a, b = (reshaped(m, m.pair(v, (1, 6, 2, 3), 1 / 256, lowest), (1, 1, 6, 6)) for v in (a, b))
    m.output(product(m, a, b, 2))
    model = m.model()
    found = assert_equal(model, seed, folded(model, weight_sums=False)).folded
    (missing,) = (a for a in found.assignments if a.target is Target.HOST and a.op == "MatMul")
    assert missing.reason == "the hardware lacks products of two tensors with a zero point (-128)"
    assert missing.remedy == "set weight_sums = true"
    assert "MatMul" not in {a.op for a in folded(model).assignments if a.target is Target.HOST}


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("summed", ["both", "left", "right", "neither"])
def test_orders_of_the_operands(summed: str, swapped: bool, rng: random.Random, seed: int) -> None:
    m = OnnxMaker(rng)
    rows, columns = rng.choice([(2, 3), (4, 4), (1, 7)])
    tokens = rows * columns
    x = m.image(3, rows, columns)
    # Sums over channels need channels; over pixels, pixels: with as many of both, every order is a product.
    a, b = (reshaped(m, m.conv(x, tokens, kernel=1), (1, 1, tokens, tokens)) for _ in range(2))
    a = turned(m, a) if summed in ("both", "left") else a
    b = turned(m, b) if summed in ("neither", "left") else b
    y = product(m, b, a, 2) if swapped else product(m, a, b, 2)
    # As an output, the result is given the model's order.
    m.output(m.unary("Sigmoid", y, 1 / 256))
    compared(m, seed)
