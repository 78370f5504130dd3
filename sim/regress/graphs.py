"""Recipes of small integer graphs with random weights; each is a function of a maker and plain arguments."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from intloom.common.errors import UsageError
from intloom.compiler.ir import (
    Add,
    AvgPool,
    Concat,
    Constant,
    Conv,
    ConvTranspose,
    IntGraph,
    MatMul,
    MaxPool,
    Mul,
    Node,
    Resize,
    Slice,
    Softmax,
    Table,
    Tensor,
)
from intloom.hw.spec.arith import Affine, scale_from_float
from intloom.hw.spec.softmax import largest_exponential, pack_exponentials
from intloom.sim.result import Arrays

_TYPICAL = 74 * 74
"""About the mean square of a random int8 product's factors: scales that fit it spread sums over the int8 range."""


class Maker:
    """Adds nodes to a graph; each method gives the name of its output."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.tensors: dict[str, Tensor] = {}
        self.nodes: list[Node] = []
        self.inputs: list[str] = []

    def input(self, channels: int, height: int, width: int) -> str:
        """A graph input."""
        name = self._tensor(f"in{len(self.inputs)}", channels, height, width)
        self.inputs.append(name)
        return name

    def finish(self, output: str) -> tuple[IntGraph, Arrays]:
        """The graph and random inputs for it."""
        graph = IntGraph("case", dict(self.tensors), tuple(self.nodes), tuple(self.inputs), (output,))
        return graph, {n: self._bytes(self.tensors[n].shape) for n in self.inputs}

    def convolve(
        self, x: str, channels: int, kernel: int, stride: int, pad: int, group: int = 1, nine_bits: bool = False
    ) -> str:
        """A convolution with a table."""
        _, inputs, height, width = self.tensors[x].shape
        size = [(n + 2 * pad - kernel) // stride + 1 for n in (height, width)]
        weights: NDArray[Any] = self._bytes((channels, inputs // group, kernel, kernel))
        if nine_bits:
            weights = weights - self._bytes((channels,)).astype(np.int16).reshape(-1, 1, 1, 1)
        scales = self._scales(channels, inputs // group * kernel * kernel * (1 + nine_bits))
        fields = {"weights": weights, "pads": (pad,) * 4, "strides": (stride,) * 2, "group": group, **scales}
        return self.node(Conv, (x,), (channels, size[0], size[1]), **fields)

    def transpose(self, x: str, channels: int, kernel: int, stride: int) -> str:
        """A transposed convolution."""
        _, inputs, height, width = self.tensors[x].shape
        size = [(n - 1) * stride + kernel for n in (height, width)]
        weights = self._bytes((channels, inputs, kernel, kernel))
        fields = {"weights": weights, "strides": (stride,) * 2, **self._scales(channels, inputs * kernel * kernel)}
        return self.node(ConvTranspose, (x,), (channels, size[0], size[1]), **fields)

    def node(self, kind: type[Node], inputs: tuple[str, ...], shape: tuple[int, int, int], **fields: Any) -> str:
        """Any node."""
        number = len(self.nodes)
        output = self._tensor(f"t{number}", *shape)
        name = f"{kind.__name__.lower()}{number}"
        self.nodes.append(kind(name=name, inputs=inputs, output=output, origin=(name,), **fields))
        return output

    def affine(self) -> Affine:
        """Constants of a sum that seldom saturates."""
        m1, m2 = (int(m) for m in self.random.integers(1 << 14, 1 << 16, 2))
        return Affine(m1, m2, int(self.random.integers(-(1 << 20), 1 << 20)), 17, bool(self.random.integers(2)))

    def table(self) -> bytes:
        """A random table."""
        return bytes(self.random.integers(0, 256, 256).astype(np.uint8))

    def exponentials(self, channels: int) -> dict[str, Any]:
        """Exponentials of a random base whose sum of `channels` fits, and the other fields of a Softmax."""
        numbers = largest_exponential(channels) * self.random.uniform(0.6, 0.999) ** np.arange(255.0, -1, -1)
        packed = pack_exponentials(int(n) for n in numbers)
        zero_point = int(self.random.choice((-128, int(self.random.integers(-128, 128)))))
        return {"exponentials": packed, "less": int(self.random.integers(4)), "zp_out": zero_point}

    def shape(self, tensor: str) -> tuple[int, int, int]:
        """Channels, height and width."""
        return self.tensors[tensor].shape[1:]

    def _bytes(self, shape: tuple[int, ...]) -> NDArray[np.int8]:
        return self.random.integers(-128, 128, shape, dtype=np.int8)

    def _scales(self, channels: int, products: int) -> dict[str, Any]:
        typical = _TYPICAL * np.sqrt(products)
        mantissa, exponent = np.frexp(50 / typical * self.random.uniform(0.5, 2.0, channels))
        return {
            "bias": self.random.integers(-int(typical), int(typical) + 1, channels).astype(np.int32),
            "mantissa": np.round(mantissa * (1 << 23)).astype(np.uint32) << 1,
            "shift": (24 - exponent).astype(np.uint8),
            "zp_in": int(self.random.integers(-20, 20)),
            "zp_out": int(self.random.integers(-20, 20)),
            "table": self.table(),
        }

    def _tensor(self, name: str, channels: int, height: int, width: int) -> str:
        self.tensors[name] = Tensor(name, (1, channels, height, width), 0.05, int(self.random.integers(-20, 20)), False)
        return name


Recipe = Callable[..., str]


def conv(m: Maker, inputs: int, outputs: int, height: int, width: int, kernel: int, stride: int, pad: int) -> str:
    """A convolution."""
    return m.convolve(m.input(inputs, height, width), outputs, kernel, stride, pad)


def zero_points(m: Maker, inputs: int, outputs: int, height: int, width: int) -> str:
    """A convolution whose weights have zero points."""
    return m.convolve(m.input(inputs, height, width), outputs, 3, 1, 1, nine_bits=True)


def grouped(m: Maker, inputs: int, outputs: int, height: int, width: int, kernel: int, stride: int, group: int) -> str:
    """A grouped convolution; depthwise when group = inputs."""
    return m.convolve(m.input(inputs, height, width), outputs, kernel, stride, kernel // 2, group)


def transposed(m: Maker, inputs: int, outputs: int, height: int, width: int, kernel: int, stride: int) -> str:
    """A transposed convolution."""
    return m.transpose(m.input(inputs, height, width), outputs, kernel, stride)


def add(m: Maker, channels: int, height: int, width: int) -> str:
    """A sum of two inputs."""
    shape = (channels, height, width)
    return m.node(Add, (m.input(*shape), m.input(*shape)), shape, affine=m.affine(), table=m.table())


def residual(m: Maker, channels: int, height: int, width: int) -> str:
    """A convolution added to its own input."""
    x = m.convolve(m.input(channels, height, width), channels, 1, 1, 0)
    return m.node(Add, (m.convolve(x, channels, 3, 1, 1), x), m.shape(x), affine=m.affine())


def matmul(m: Maker, channels: int, height: int, width: int, columns: int) -> str:
    """A product of two inputs over their channels, which fill whole words."""
    shape, other = (channels, height, width), (channels, 1, columns)
    a, b = m.input(*shape), m.input(*other)
    scale = scale_from_float(50 / (_TYPICAL * channels**0.5))
    zeros = {
        "zp_a": m.tensors[a].zero_point,
        "zp_b": m.tensors[b].zero_point,
        "zp_out": int(m.random.integers(-20, 20)),
    }
    fields = {"mantissa": scale.mantissa, "shift": scale.shift, "table": m.table(), **zeros}
    return m.node(MatMul, (a, b), (columns, height, width), **fields)


def transposed_constant(m: Maker, channels: int, height: int, width: int) -> str:
    """Channels and pixels exchanged, by a product with the identity matrix."""
    x, one = m.input(channels, height, width), scale_from_float(1.0)
    values = np.eye(channels, dtype=np.int8).reshape(channels, 1, channels)
    identity = m.node(Constant, (), (channels, 1, channels), values=values)
    m.tensors[identity] = replace(m.tensors[identity], zero_point=0)
    zero = m.tensors[x].zero_point
    fields = {"mantissa": one.mantissa, "shift": one.shift, "zp_a": 0, "zp_b": zero, "zp_out": zero}
    return m.node(MatMul, (identity, x), (height * width, 1, channels), **fields)


def softmax(m: Maker, channels: int, height: int, width: int) -> str:
    """A Softmax over channels."""
    x = m.input(channels, height, width)
    return m.node(Softmax, (x,), (channels, height, width), **m.exponentials(channels))


def mul(m: Maker, channels: int, height: int, width: int) -> str:
    """A product of two inputs."""
    shape = (channels, height, width)
    affine = Affine(int(m.random.integers(1 << 12, 1 << 14)), 0, 1 << 10, 20)
    return m.node(Mul, (m.input(*shape), m.input(*shape)), shape, affine=affine, zero_a=3, zero_b=-5)


def table(m: Maker, channels: int, height: int, width: int) -> str:
    """A function of every byte."""
    return m.node(Table, (m.input(channels, height, width),), (channels, height, width), table=m.table())


def _pooled(height: int, width: int, kernel: int, stride: int, pad: int) -> tuple[int, int]:
    return (height + 2 * pad - kernel) // stride + 1, (width + 2 * pad - kernel) // stride + 1


def maxpool(m: Maker, channels: int, height: int, width: int, kernel: int, stride: int, pad: int) -> str:
    """A maximum over windows."""
    x, size = m.input(channels, height, width), _pooled(height, width, kernel, stride, pad)
    fields = {"kernel": (kernel,) * 2, "strides": (stride,) * 2, "pads": (pad,) * 4}
    return m.node(MaxPool, (x,), (channels, *size), **fields)


def avgpool(m: Maker, channels: int, height: int, width: int, kernel: int, stride: int, pad: int) -> str:
    """An average over windows."""
    x, size = m.input(channels, height, width), _pooled(height, width, kernel, stride, pad)
    affine = Affine((1 << 20) // (kernel * kernel), 0, 99, 20)
    fields = {"kernel": (kernel,) * 2, "strides": (stride,) * 2, "pads": (pad,) * 4, "affine": affine, "zp_in": -7}
    return m.node(AvgPool, (x,), (channels, *size), **fields)


def resize(m: Maker, channels: int, height: int, width: int, factor: int) -> str:
    """An enlargement."""
    x = m.input(channels, height, width)
    return m.node(Resize, (x,), (channels, height * factor, width * factor), factors=(factor, factor))


def concat(m: Maker, first: int, second: int, height: int, width: int) -> str:
    """Two convolutions side by side."""
    x = m.input(first, height, width)
    parts = (m.convolve(x, first, 1, 1, 0), m.convolve(x, second, 1, 1, 0))
    return m.node(Concat, parts, (first + second, height, width))


def slice_(m: Maker, channels: int, height: int, width: int, start: int, stop: int) -> str:
    """A convolution of some channels."""
    x = m.input(channels, height, width)
    part = m.node(Slice, (x,), (stop - start, height, width), start=start, stop=stop)
    return m.convolve(part, 4, 1, 1, 0)


def chain(m: Maker, nodes: int) -> str:
    """A random chain of operations with branches, decided by the seed."""
    r = m.random
    x = m.input(int(r.integers(1, 20)), int(r.integers(5, 16)), int(r.integers(5, 16)))
    for _ in range(nodes):
        x = _grow(m, x, int(r.integers(6)))
    return m.convolve(x, int(r.integers(1, 20)), 1, 1, 0)


def _grow(m: Maker, x: str, choice: int) -> str:
    r, (channels, height, width) = m.random, m.shape(x)
    if choice == 0 and height * width < 200:
        return m.node(Resize, (x,), (channels, 2 * height, 2 * width), factors=(2, 2))
    if choice == 1:
        return m.node(MaxPool, (x,), (channels, height, width), kernel=(3, 3), pads=(1, 1, 1, 1))
    if choice == 2:
        return m.node(Add, (m.convolve(x, channels, 3, 1, 1), x), (channels, height, width), affine=m.affine())
    if choice == 3:
        other = m.convolve(x, int(r.integers(1, 12)), 1, 1, 0)
        return m.node(Concat, (x, other), (channels + m.shape(other)[0], height, width))
    if choice == 4 and min(height, width) > 4:
        return m.convolve(x, int(r.integers(1, 24)), 3, 2, 1)
    return m.convolve(x, int(r.integers(1, 24)), int(r.choice([1, 3, 5])), 1, 2)


RECIPES: dict[str, Recipe] = {
    "add": add,
    "avgpool": avgpool,
    "chain": chain,
    "concat": concat,
    "conv": conv,
    "grouped": grouped,
    "matmul": matmul,
    "maxpool": maxpool,
    "mul": mul,
    "zero_points": zero_points,
    "residual": residual,
    "resize": resize,
    "slice": slice_,
    "softmax": softmax,
    "table": table,
    "transposed": transposed,
    "transposed_constant": transposed_constant,
}


def make_graph(recipe: str, seed: int, arguments: dict[str, Any]) -> tuple[IntGraph, Arrays]:
    """The graph and inputs of a recipe; equal arguments give equal graphs."""
    if recipe not in RECIPES:
        raise UsageError(f"graph must be one of {', '.join(RECIPES)}, not {recipe!r}")
    maker = Maker(seed)
    return maker.finish(RECIPES[recipe](maker, **arguments))
