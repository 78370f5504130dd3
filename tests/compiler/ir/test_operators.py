"""Every operator: semantics in numpy, plain Python loops and the ONNX form give the same bytes; no part can lack."""

import random
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intloom.common.errors import ModelError, UnsupportedError
from intloom.compiler.ir import (
    Add,
    AvgPool,
    Concat,
    Constant,
    Conv,
    ConvTranspose,
    Custom,
    IntGraph,
    MatMul,
    MaxPool,
    Mul,
    Node,
    Norm,
    Resize,
    Slice,
    Softmax,
    Table,
    Tensor,
)
from intloom.compiler.ir.node import operator, operators
from intloom.compiler.ir.onnx_export import to_onnx
from intloom.compiler.ir.verify import verify
from intloom.hw.spec.arith import Affine, RoundingMode
from intloom.hw.spec.softmax import LARGEST_TOTAL, MOST_LESS, largest_exponential, pack_exponentials
from intloom.sim.golden import run_graph
from tests.compiler.ir.plain import PLAIN
from tests.support.parity import run_onnxruntime

Shape = tuple[int, int, int]
Drawn = tuple[dict[str, Any], list[Shape]]
"""Fields of a node, and the shapes of its operands."""
Noise = np.random.Generator


def table(noise: Noise) -> bytes | None:
    return noise.bytes(256) if noise.integers(2) else None


def affine(noise: Noise, terms: int = 1) -> Affine:
    shift = int(noise.integers(0, 20))
    m1, m2 = (int(m) for m in noise.integers(-(1 << shift), (1 << shift) + 1, 2) // terms)
    return Affine(m1, m2, int(noise.integers(-50, 50)) << shift, shift, bool(noise.integers(2)))


def some_shape(noise: Noise) -> Shape:
    return int(noise.integers(1, 6)), int(noise.integers(3, 7)), int(noise.integers(3, 7))


def convolution(noise: Noise) -> Drawn:
    """Any geometry; the bias takes some sums beyond the 24 bits of fp32, up to the largest."""
    group, each_in, each_out = int(noise.choice([1, 1, 2, 3])), int(noise.integers(1, 3)), int(noise.integers(1, 3))
    kernel, channels = tuple(int(k) for k in noise.integers(1, 4, 2)), each_out * group
    weights = noise.integers(-128, 128, (channels, each_in, *kernel)).astype(np.int8)
    zero_point = noise.choice([0, 0, -128, -1, 1, 127])
    largest = int(noise.choice([5000, 1 << 26, (1 << 31) - (1 << 20)]))
    bits = 8 if largest == 5000 else largest.bit_length() - 7
    fields = {
        "weights": weights - np.int16(zero_point) if zero_point else weights,
        "bias": noise.integers(-largest, largest, channels, endpoint=True).astype(np.int32),
        "mantissa": noise.integers(1 << 23, 1 << 24, channels).astype(np.uint32),
        "shift": noise.integers(23 + bits, 25 + bits, channels).astype(np.uint8),
        "zp_in": int(noise.integers(-128, 128)),
        "zp_out": int(noise.integers(-128, 128)),
        "pads": tuple(int(p) for p in noise.integers(0, 2, 4)),
        "strides": tuple(int(s) for s in noise.integers(1, 3, 2)),
        "dilations": tuple(int(d) for d in noise.integers(1, 3, 2)),
        "group": group,
        "table": table(noise),
    }
    return fields, [(each_in * group, int(noise.integers(5, 8)), int(noise.integers(5, 8)))]


def transposed(noise: Noise) -> Drawn:
    fields, shapes = convolution(noise)
    return fields | {"output_padding": tuple(int(noise.integers(s)) for s in fields["strides"])}, shapes


def product(noise: Noise) -> Drawn:
    channels, height, width = some_shape(noise)
    zeros = {name: int(noise.integers(-128, 128)) for name in ("zp_a", "zp_b", "zp_out")}
    scale = {"mantissa": int(noise.integers(1 << 23, 1 << 24)), "shift": int(noise.integers(30, 34))}
    return {**zeros, **scale, "table": table(noise)}, [
        (channels, height, width),
        (channels, 2, int(noise.integers(4)) + 1),
    ]


def pair(noise: Noise) -> list[Shape]:
    """Equal shapes, or a pixel and an image."""
    shape = some_shape(noise)
    pixel = (shape[0], 1, 1)
    return [[shape, shape], [pixel, shape], [shape, pixel]][int(noise.integers(3))]


def addition(noise: Noise) -> Drawn:
    return {"affine": affine(noise), "table": table(noise)}, pair(noise)


def multiplication(noise: Noise) -> Drawn:
    zeros = {name: int(noise.integers(-128, 128)) for name in ("zero_a", "zero_b")}
    return {"affine": affine(noise, 64), "table": table(noise), **zeros}, pair(noise)


def pool(noise: Noise) -> dict[str, Any]:
    kernel = tuple(int(k) for k in noise.integers(1, 4, 2))
    pads = tuple(int(noise.integers(k)) for k in (*kernel, *kernel))
    return {"kernel": kernel, "strides": tuple(int(s) for s in noise.integers(1, 4, 2)), "pads": pads}


def average(noise: Noise) -> Drawn:
    """A window of one pixel may leave out rows and columns."""
    single = {"kernel": (1, 1), "strides": (1, 1), "pads": tuple(int(p) for p in noise.integers(-1, 2, 4))}
    zero_point = int(noise.integers(-128, 128))
    fields = {"affine": affine(noise, 4), "zp_in": zero_point, "table": table(noise)}
    return (single if noise.integers(2) else pool(noise)) | fields, [some_shape(noise)]


def concatenation(noise: Noise) -> Drawn:
    _, height, width = some_shape(noise)
    return {}, [(int(c), height, width) for c in noise.integers(1, 4, int(noise.integers(1, 4)))]


def channel_slice(noise: Noise) -> Drawn:
    shape = some_shape(noise)
    start = int(noise.integers(shape[0]))
    return {"start": start, "stop": int(noise.integers(start, shape[0])) + 1}, [shape]


def softmax(noise: Noise) -> Drawn:
    shape = some_shape(noise)
    numbers = largest_exponential(shape[0]) * noise.uniform(0.3, 0.999) ** np.arange(255.0, -1, -1)
    packed = pack_exponentials(int(n) * int(noise.integers(8) > 0) for n in numbers)
    return {"exponentials": packed, "less": int(noise.integers(4)), "zp_out": int(noise.integers(-128, 128))}, [shape]


def normalization(noise: Noise) -> Drawn:
    shape = some_shape(noise)
    gamma, beta = noise.integers(-1 << 12, 1 << 12, (2, shape[0])).astype(np.int16)
    epsilon = int(noise.integers(1 << int(noise.integers(1, 45)))) * int(noise.integers(4) > 0)
    fields = {"center": bool(noise.integers(2)), "zp_in": int(noise.integers(-128, 128)), "epsilon": epsilon}
    return {"gamma": gamma, "beta": beta, **fields}, [shape]


DRAW: Mapping[type[Node], Callable[[Noise], Drawn]] = {
    Add: addition,
    AvgPool: average,
    Concat: concatenation,
    Constant: lambda noise: ({"values": noise.integers(-128, 128, some_shape(noise)).astype(np.int8)}, []),
    Conv: convolution,
    ConvTranspose: transposed,
    MatMul: product,
    MaxPool: lambda noise: (pool(noise), [some_shape(noise)]),
    Mul: multiplication,
    Norm: normalization,
    Resize: lambda noise: ({"factors": tuple(int(f) for f in noise.integers(1, 4, 2))}, [some_shape(noise)]),
    Slice: channel_slice,
    Softmax: softmax,
    Table: lambda noise: ({"table": noise.bytes(256)}, [some_shape(noise)]),
}


def draw(kind: type[Node], noise: Noise) -> IntGraph:
    """A graph of one random node."""
    fields, shapes = DRAW[kind](noise)
    names = tuple("abc"[: len(shapes)])
    zeros = [fields.get(k) for k in (("zp_a", "zp_b") if kind is MatMul else ("zp_in",) * len(shapes))]
    tensors = {n: Tensor(n, (1, *s), 1.0, z or 0, False) for n, s, z in zip(names, shapes, zeros, strict=True)}
    node = kind(name="n", inputs=names, output="y", **fields)
    described = (1, 1, 1, 1)
    tensors["y"] = Tensor("y", node.result_shape([tensors[n] for n in names], described), 1.0, 0, False)
    graph = IntGraph("g", tensors, (node,), names, ("y",))
    verify(graph)
    return graph


def test_every_operator_is_compared() -> None:
    assert set(PLAIN) == set(DRAW) == set(operators().values()) - {Custom}


@pytest.mark.parametrize("match", list(RoundingMode))
@pytest.mark.parametrize("kind", list(PLAIN), ids=lambda kind: kind.__name__)
def test_equals_plain_loops(kind: type[Node], match: RoundingMode, rng: random.Random) -> None:
    noise = np.random.default_rng(rng.getrandbits(32))
    for _ in range(8):
        graph = draw(kind, noise)
        inputs = {n: noise.integers(-128, 128, graph.tensors[n].shape, dtype=np.int8) for n in graph.inputs}
        made = run_graph(graph, inputs, match=match)["y"]
        operands = [inputs[n][0].tolist() for n in graph.inputs]
        node = graph.nodes[0]
        expected = [PLAIN[kind](node, operands, at, match) for at in np.ndindex(made.shape[1:])]
        np.testing.assert_array_equal(made.reshape(-1), expected, err_msg=repr(node))
        if match is RoundingMode.ORT:
            np.testing.assert_array_equal(run_onnxruntime(to_onnx(graph), inputs, ["y"])["y"], made)


def test_a_custom_operation_has_no_form_in_onnx() -> None:
    node = Custom(name="mine", inputs=("a",), output="y", domain="acme", op="Nothing")
    tensors = {n: Tensor(n, (1, 1, 1, 1), 1.0, 0, False) for n in "ay"}
    with pytest.raises(UnsupportedError, match="'mine': acme::Nothing has no form in ONNX"):
        to_onnx(IntGraph("g", tensors, (node,), ("a",), ("y",)))


@pytest.mark.parametrize("part", ["result_shape", "evaluate", "export"])
def test_an_operator_that_lacks_a_part_is_refused_at_once(part: str) -> None:
    parts = {name: getattr(Table, name) for name in ("result_shape", "evaluate", "export") if name != part}
    with pytest.raises(TypeError, match=f"the operator Lacking must define {part}"):
        operator(type("Lacking", (Node,), parts))
    assert "Lacking" not in operators()


def test_an_operator_is_registered_once() -> None:
    with pytest.raises(TypeError, match="the operator Table is already registered"):
        operator(type("Table", (Table,), {}))
    assert operators()["Table"] is Table


@given(st.integers(1, 3000))
def test_long_sums_of_extreme_values_stay_exact(channels: int) -> None:
    """All products at their largest: beyond 1,024 of them float32 would lose bits."""
    node = Conv(
        name="n", inputs=("x",), output="y",
        weights=np.full((1, channels, 1, 1), 127, np.int8), bias=np.array([1], np.int32),
        mantissa=np.array([1 << 23], np.uint32), shift=np.array([23], np.uint8), zp_in=0, zp_out=0,
    )  # fmt: skip
    tensors = {"x": Tensor("x", (1, channels, 1, 1), 1.0, 0, False), "y": Tensor("y", (1, 1, 1, 1), 1.0, 0, False)}
    x = np.full((1, channels, 1, 1), -127, np.int8)
    x[0, : channels // 2] = 127
    graph = IntGraph("g", tensors, (node,), ("x",), ("y",))
    total = 127 * 127 * (2 * (channels // 2) - channels) + 1
    assert run_graph(graph, {"x": x}, match=RoundingMode.EXACT)["y"].item() == max(-128, min(127, total))


def accepts(kind: type[Node], shapes: list[Shape], zero_point: int = 0, **fields: Any) -> bool:
    """Whether an operator's rules hold for these fields and operands."""
    tensors = [Tensor(str(k), (1, *shape), 1.0, zero_point, False) for k, shape in enumerate(shapes)]
    node = kind(name="n", inputs=tuple(t.name for t in tensors), output="y", **fields)
    try:
        shape = node.result_shape(tensors, (1, 1, 1, 1))
    except ModelError as error:
        return not str(error).startswith("integer graph, 'n': ")
    assert len(shape) == 4
    return True


def check_limits(kind: type[Node], shapes: list[Shape], fields: dict[str, Any], cases: dict[str, Any]) -> None:
    """Of each field some values that are accepted, and some that are not; the others keep theirs."""
    assert accepts(kind, shapes, **fields)
    for name, (good, bad) in cases.items():
        for values, expected in ((good, True), (bad, False)):
            for value in values:
                assert accepts(kind, shapes, **fields | {name: value}) == expected, (kind.__name__, name, value)


@pytest.mark.parametrize("kind", [Add, Mul, AvgPool])
def test_affine_coefficients_fit_their_fields(kind: type[Node]) -> None:
    more: dict[str, Any] = {AvgPool: {"kernel": (2, 2), "zp_in": 0}, Mul: {"zero_a": 0, "zero_b": 0}}.get(kind, {})
    shapes = [(3, 4, 4)] * (2 - (kind is AvgPool))
    for name, largest in (("m1", (1 << 24) - 1), ("m2", (1 << 24) - 1), ("c", (1 << 43) - 1), ("shift", 43)):
        lowest = 0 if name == "shift" else -largest
        for value in (lowest - 1, lowest, largest, largest + 1):
            k = Affine(**{"m1": 1, "m2": 1, "c": 0, "shift": 0} | {name: value})
            assert accepts(kind, shapes, affine=k, **more) == (lowest <= value <= largest), (name, value)


@pytest.mark.parametrize("kind", [Conv, ConvTranspose])
def test_constants_of_a_convolution_fit_their_fields(kind: type[Node]) -> None:
    channels = {"bias": (np.int32, 9), "mantissa": (np.uint32, 1), "shift": (np.uint8, 63)}
    fields: dict[str, Any] = {name: np.full(4, value, dtype) for name, (dtype, value) in channels.items()}
    fields |= {"weights": np.ones((4, 6, 2, 3), np.int8), "zp_in": 0, "zp_out": 0, "pads": (0, 0, 0, 0), "group": 1}
    wide = [np.zeros((4, 6, 2, 3), np.int16) for _ in range(5)]
    for weights, (low, high) in zip(wide, ((-255, 0), (0, 255), (-128, 127), (-256, 0), (-128, 128)), strict=True):
        weights[2].flat[:2] = low, high
    apart = np.zeros((4, 6, 2, 3), np.int16)
    # Only weights of one channel meet.
    apart[0, 0, 0, 0], apart[1, 0, 0, 0] = -200, 200
    ones = np.ones((4, 6, 2, 3))
    cases: dict[str, Any] = {
        "weights": ([*wide[:3], apart], [*wide[3:], ones.astype(np.int32), ones[..., 0].astype(np.int8)]),
        "mantissa": (
            [np.array([0, 1, 1, (1 << 24) - 1], np.uint32)],
            [np.array([1, 1, 1, 1 << 24], np.uint32), np.array([1 << 24, 1, 1, 1], np.uint32)],
        ),
        "shift": ([np.array([0, 1, 63, 2], np.uint8)], [np.array([0, 64, 1, 0], np.uint8)]),
        "zp_in": ([0], [-1, 1]),
        "pads": ([(1, 0, 0, 1)], [tuple(-(k == at) for k in range(4)) for at in range(4)]),
        "strides": ([(1, 2), (2, 1)], [(0, 1), (1, 0), (-1, 1)]),
        "dilations": ([(1, 2), (2, 1)], [(0, 1), (1, 0), (1, -1)]),
        "group": ([1], [0, -1, 2, 3]),
    }
    for name, (dtype, value) in channels.items():
        good, bad = cases.get(name, ([], []))
        other = np.int64 if dtype is not np.int64 else np.int32
        cases[name] = (good, [*bad, np.full(3, value, dtype), np.full(5, value, dtype), np.full(4, value, other)])
    check_limits(kind, [(6, 8, 8)], fields, cases)
    for channels_in, group in ((12, 2), (24, 4)):
        assert accepts(kind, [(channels_in, 8, 8)], **fields | {"group": group})
    # Three groups cover 18 channels, but four output channels are no three groups.
    assert not accepts(kind, [(18, 8, 8)], **fields | {"group": 3})
    assert not accepts(kind, [(5, 8, 8)], **fields)


def test_fields_of_the_other_operators_have_limits() -> None:
    product = {"zp_a": 3, "zp_b": 3, "zp_out": 0, "mantissa": 1, "shift": 1, "zero_point": 3}
    int8 = ([-128, 127], [-129, 128])
    limits = {"mantissa": ([0, (1 << 24) - 1], [-1, 1 << 24]), "shift": ([0, 63], [-1, 64]), "zp_out": int8}
    zeros = {name: ([3], [2, 4]) for name in ("zp_a", "zp_b")}
    check_limits(MatMul, [(4, 2, 2), (4, 1, 3)], product, limits | zeros)
    assert not accepts(MatMul, [(4, 2, 2), (5, 1, 3)], **product)

    constants = {name: np.zeros(1024, np.int16) for name in ("gamma", "beta")}
    norm: dict[str, Any] = {**constants, "center": True, "zp_in": 3, "epsilon": 1, "zero_point": 3}
    others = [np.zeros(1023, np.int16), np.zeros(1025, np.int16), np.zeros(1024, np.int32)]
    cases = {"epsilon": ([0, (1 << 45) - 1], [-1, 1 << 45]), "zp_in": ([3], [2]), "gamma": ([], others)}
    check_limits(Norm, [(1024, 2, 2)], norm, cases | {"beta": ([], others)})
    longer = {name: np.zeros(1025, np.int16) for name in ("gamma", "beta")}
    assert not accepts(Norm, [(1025, 2, 2)], **norm | longer)

    # So many that the largest exponential is not the limit.
    count = 1000
    exact = pack_exponentials([*[0] * 255, LARGEST_TOTAL // count])
    fields = {"exponentials": exact, "less": 0, "zp_out": 0}
    above = pack_exponentials([*[0] * 254, LARGEST_TOTAL // count + 1, 0])
    cases = {"less": ([0, 1, 2, MOST_LESS], [-1, MOST_LESS + 1]), "zp_out": int8}
    check_limits(
        Softmax, [(count, 2, 2)], fields, {**cases, "exponentials": ([exact], [exact[3:], exact + b"000", above])}
    )

    check_limits(Slice, [(4, 2, 2)], {"start": 0, "stop": 4}, {"start": ([3], [-1, 4, 5]), "stop": ([1], [0, 5])})
    check_limits(Resize, [(4, 2, 2)], {"factors": (1, 1)}, {"factors": ([(1, 2)], [(0, 1), (1, 0), (2, -1)])})
    good, bad = np.zeros((1, 2, 3), np.int8), [np.zeros((1, 2), np.int8), np.zeros((1, 2, 3), np.int16)]
    check_limits(Constant, [], {"values": good}, {"values": ([good], bad)})


@pytest.mark.parametrize("kind", [MaxPool, AvgPool])
def test_windows_are_positive_and_only_single_pixels_leave_some_out(kind: type[Node]) -> None:
    fields: dict[str, Any] = {"kernel": (1, 1), "strides": (1, 1), "pads": (0, 0, 0, 0)}
    if kind is AvgPool:
        fields |= {"affine": Affine(1, 0, 0, 0), "zp_in": 0}
    less = [tuple(-(k == at) for k in range(4)) for at in range(4)]
    pairs = [(2, 1), (1, 2)], [(0, 1), (1, 0), (-1, 2)]
    check_limits(kind, [(3, 6, 6)], fields, {"pads": (less, []), "kernel": pairs, "strides": pairs})
    for name, values in (("kernel", (1, 2)), ("kernel", (2, 1)), ("strides", (2, 1)), ("strides", (1, 2))):
        check_limits(kind, [(3, 6, 6)], fields | {name: values}, {"pads": ([(1, 0, 0, 1)], less)})


def test_operands_of_a_pair_are_equal_or_one_is_a_pixel() -> None:
    shapes = [(c, h, w) for c in (2, 3) for h in (1, 4) for w in (1, 4)]
    for a in shapes:
        for b in shapes:
            fits = a == b or (a[0] == b[0] and (1, 1) in (a[1:], b[1:]))
            assert accepts(Add, [a, b], affine=Affine(1, 1, 0, 0)) == fits, (a, b)
            assert accepts(Concat, [a, b]) == (a[1:] == b[1:])
    assert not accepts(Concat, [])
