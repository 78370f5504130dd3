"""Every operator: semantics in numpy, plain Python loops and the ONNX form give the same bytes; no part can lack."""

import random
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intloom.common.errors import UnsupportedError
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
from intloom.hw.spec.softmax import largest_exponential, pack_exponentials
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
