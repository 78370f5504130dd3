"""Layer and RMS normalization on the vector unit: equal to the integers of the definition, and within 1 of float."""

import random

import numpy as np
import pytest

from intloom.compiler.fold.target import Target
from intloom.flow.checking import reference_model
from intloom.hw.spec.params import preset
from tests.support.lowered import compared, kinds
from tests.support.onnx_maker import OnnxMaker, Value
from tests.support.parity import folded, random_feeds, run_folded, run_onnxruntime

SMALL = preset("small").replace(vector_lanes=2, vector_norm=True, weight_sums=True)
BASE = preset("base")
NORMS = {"LayerNormalization": (17, True), "RMSNormalization": (23, False), "SimplifiedLayerNormalization": (17, False)}


def norm(m: OnnxMaker, op: str, x: Value, axis: int, scale: float = 0.03) -> Value:
    """The operator with random constants; its result has a random zero point."""
    noise = np.random.default_rng(m.rng.getrandbits(32))
    names = [x.name, m.constant(noise.uniform(-1.5, 1.5, x.shape[axis]).astype(np.float32))]
    if op == "LayerNormalization":
        names.append(m.constant(noise.uniform(-1, 1, x.shape[axis]).astype(np.float32)))
    (value,) = m.node(op, names, axis=axis, epsilon=m.rng.choice((1e-5, 1e-12, 0.5)))
    return m.pair(value, x.shape, scale, m.rng.choice((0, 9, 100)) - (128 if m.dtype == "int8" else 0))


def chain(m: OnnxMaker, x: Value, axis: int, form: str) -> Value:
    """The same as elementary operators: `form` says how it is centered, squared, divided; constants may be `stored`."""
    center, square, divide, *stored = form.split()
    noise = np.random.default_rng(m.rng.getrandbits(32))
    along = [1] * (len(x.shape) - axis % len(x.shape) - 1)
    gamma, beta = (noise.uniform(-1, 1, [x.shape[axis], *along]).astype(np.float32) for _ in range(2))

    def mean(value: str) -> str:
        return m.node("ReduceMean", [value], axes=[axis])[0]

    def number(value: float) -> str:
        constant = np.float32(value)
        if not stored:
            return m.constant(constant)
        pair = [m.constant(np.uint8(255)), m.constant(constant / np.float32(255)), m.constant(np.uint8(0))]
        return m.node("DequantizeLinear", pair)[0]

    d = m.node("Sub", [x.name, mean(x.name)])[0] if center == "center" else x.name
    squares = m.node("Pow", [d, number(2)])[0] if square == "Pow" else m.node("Mul", [d, d])[0]
    root = m.node("Sqrt", m.node("Add", [mean(squares), m.constant(np.float32(1e-6))]))[0]
    if divide == "Div":
        y = m.node("Div", [d, root])[0]
    elif divide == "Reciprocal":
        y = m.node("Mul", [m.node("Reciprocal", [root])[0], d])[0]
    else:
        y = m.node("Mul", [d, m.node("Div", [number(1), root])[0]])[0]
    y = m.node("Mul", [m.constant(gamma), y])[0]
    if center == "center":
        y = m.node("Add", [y, m.constant(beta)])[0]
    return m.pair(y, x.shape, 0.03, 0 if m.dtype == "int8" else 120)


def transposed(m: OnnxMaker, x: Value, order: tuple[int, ...]) -> Value:
    (name,) = m.node("Transpose", [x.name], perm=order)
    return Value(name, tuple(x.shape[k] for k in order), x.scale)


def image(m: OnnxMaker, rng: random.Random, channels: int, size: tuple[int, int] | None = None) -> Value:
    """An image of several pixels: a Transpose of one pixel alone keeps the order of bytes and runs on the host."""
    return m.conv(m.image(3, *(size or (rng.randint(1, 6), rng.randint(2, 40)))), channels, kernel=1)


@pytest.mark.parametrize("params", [SMALL, BASE], ids=["small", "base"])
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("op", NORMS)
def test_over_the_last_axis_on_every_level(params, dtype: str, op: str, rng: random.Random, seed: int) -> None:
    m = OnnxMaker(rng, dtype=dtype, opset=NORMS[op][0])
    x = image(m, rng, rng.choice((2, 8, 17, rng.randint(2, 90))))
    m.output(transposed(m, norm(m, op, transposed(m, x, (0, 2, 3, 1)), rng.choice((-1, 3))), (0, 3, 1, 2)))
    found = compared(m, seed, params)
    assert "Norm" in kinds(found)
    form, _ = reference_model(found.folded, m.model())
    assert not {op, "Sqrt"} & {n.op_type for n in form.graph.node}


@pytest.mark.parametrize(
    "form", ["center Pow Div", "center Mul Reciprocal", "plain Pow One", "plain Pow One stored", "plain Mul Div"]
)
def test_a_chain_over_channels_on_every_level(form: str, rng: random.Random, seed: int) -> None:
    m = OnnxMaker(rng)
    m.output(chain(m, image(m, rng, rng.randint(2, 90)), 1, form))
    found = compared(m, seed, BASE)
    assert kinds(found)[-1] == "Norm"
    assert [n.center for n in found.folded.graph.nodes if hasattr(n, "center")] == [form.startswith("center")]


def length(m: OnnxMaker, x: Value, least: float | None) -> Value:
    """The channels over their Euclidean length, which is at least a constant, as PyTorch writes it."""
    (root,) = m.node("ReduceL2", [x.name], axes=[1], keepdims=1)
    if least is not None:
        (root,) = m.node("Clip", [root, m.constant(np.float32(least))])
        (root,) = m.node("Expand", [root, m.constant(np.array(x.shape))])
    return m.pair(m.node("Div", [x.name, root])[0], x.shape, 1 / 128, 0 if m.dtype == "int8" else 128)


@pytest.mark.parametrize("least", [None, 1e-12])
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_a_length_on_every_level(dtype: str, least: float | None, rng: random.Random, seed: int) -> None:
    m = OnnxMaker(rng, dtype=dtype)
    m.output(length(m, image(m, rng, rng.choice((2, 17, 90))), least))
    found = compared(m, seed, BASE)
    assert kinds(found)[-1] == "Norm"


def test_a_length_that_its_bound_can_exceed_stays_on_the_host(rng: random.Random) -> None:
    m = OnnxMaker(rng)
    x = image(m, rng, 8)
    m.output(length(m, x, 2 * x.scale))
    (last,) = (a for a in folded(m.model(), norm=True).assignments if a.op == "ReduceL2")
    assert last.target is Target.HOST
    assert "lengths below" in last.reason


def test_a_length_is_within_one_of_onnxruntime(rng: random.Random, seed: int) -> None:
    m = OnnxMaker(rng)
    y = length(m, image(m, rng, rng.choice((16, 192, 1024)), (1, 8)), 1e-12)
    m.output(y)
    model = m.model()
    feeds, name = random_feeds(model, seed), y.name
    theirs = run_onnxruntime(model.SerializeToString(), feeds, [name])[name]
    ours = run_folded(folded(model, norm=True), feeds)[name]
    assert np.abs(np.rint((theirs - ours) / np.float32(y.scale))).max() <= 1


def test_within_one_of_onnxruntime(rng: random.Random, seed: int) -> None:
    m = OnnxMaker(rng, opset=17)
    x = image(m, rng, rng.choice((16, 192, 768, 1024)), (1, 8))
    y = norm(m, "LayerNormalization", transposed(m, x, (0, 2, 3, 1)), -1)
    m.output(y)
    model = m.model()
    feeds = random_feeds(model, seed)
    (name,) = (o.name for o in model.graph.output)
    theirs = run_onnxruntime(model.SerializeToString(), feeds, [name])[name]
    ours = run_folded(folded(model, softmax=True, norm=True), feeds)[name]
    gap = np.abs(np.rint((theirs - ours) / np.float32(y.scale)))
    assert gap.max() <= 1
    assert np.count_nonzero(gap) <= gap.size // 20


@pytest.mark.parametrize(
    ("scale", "axis", "features", "why"),
    [
        (0.03, 1, {}, "no root"),
        (1e-4, 1, {"norm": True}, "offset"),
        (0.03, 2, {"norm": True}, "transpose"),
    ],
)
def test_what_stays_on_the_host(scale: float, axis: int, features: dict[str, bool], why: str, rng, seed) -> None:
    m = OnnxMaker(rng, opset=17)
    x = image(m, rng, 8, (8, 8))
    value = (
        chain(m, x, axis, "center Pow Div") if axis == 2 or not features else norm(m, "LayerNormalization", x, 3, scale)
    )
    m.output(value)
    found = folded(m.model(), **features)
    (last,) = (a for a in found.assignments if a.op in ("LayerNormalization", "Sqrt"))
    assert last.target is Target.HOST
    assert why in last.reason + last.remedy


@pytest.mark.parametrize(("opset", "remedy"), [(13, "export with opset 17"), (17, "quantize the output of")])
def test_remedy_of_a_normalization_that_was_quantized_in_parts(opset: int, remedy: str, rng: random.Random) -> None:
    m = OnnxMaker(rng, opset=opset)
    x = image(m, rng, 8)
    (d,) = m.node("Sub", [x.name, *m.node("ReduceMean", [x.name], axes=[1])])
    (square,) = m.node("ReduceMean", m.node("Pow", [d, m.constant(np.float32(2))]), axes=[1])
    m.output(m.pair(square, (1, 1, *x.shape[2:]), 0.1))
    assert {a.remedy[: len(remedy)] for a in folded(m.model(), norm=True).assignments if a.op == "Pow"} == {remedy}


def test_remedy_of_an_instance_normalization(seed):
    """Each channel's pixels as a row: normalized, then turned to an image by a product, multiplied and added to."""
    m = OnnxMaker(random.Random(seed), opset=17)
    x = m.conv(m.image(3, 6, 7), 8)
    noise = np.random.default_rng(seed)
    factors, offsets = (m.constant(noise.uniform(0.5, 1.5, (1, 8, 1, 1)).astype(np.float32)) for _ in range(2))
    rows, size = (1, 8, 42), m.constant(np.array(x.shape))
    flat = m.pair(*m.node("Reshape", [x.name, m.constant(np.array(rows))]), rows, x.scale)
    ones, zeros = (m.constant(np.full(42, v, np.float32)) for v in (1, 0))
    made = m.pair(*m.node("LayerNormalization", [flat.name, ones, zeros], axis=-1), rows, 1 / 32, 128)
    image = m.pair(*m.node("Reshape", [made.name, size]), x.shape, 1 / 32, 128)
    (value,) = m.node("Add", [*m.node("Mul", [image.name, factors]), offsets])
    m.output(m.conv(m.pair(value, x.shape, 0.05, 128), 4))
    found = compared(m, seed, SMALL)
    assert len(found.folded.regions) == 1
    assert "Norm" in kinds(found)
