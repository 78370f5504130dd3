"""Recipes of small integer graphs with random weights; each is a function of a maker, an image and plain arguments."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
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
    Norm,
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


@dataclass(frozen=True)
class Window:
    """Kernel, stride and padding, the same along both axes."""

    kernel: int = 1
    stride: int = 1
    pad: int = 0

    @property
    def strides(self) -> tuple[int, int]:
        """Along both axes."""
        return self.stride, self.stride

    @property
    def pads(self) -> tuple[int, int, int, int]:
        """At all sides."""
        return (self.pad,) * 4

    def output(self, shape: tuple[int, int, int]) -> tuple[int, int]:
        """Height and width of the result for an image of this shape."""
        height, width = ((n + 2 * self.pad - self.kernel) // self.stride + 1 for n in shape[1:])
        return height, width


_POINT, _AROUND = Window(), Window(3, 1, 1)


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
        return graph, {n: self.bytes(self.tensors[n].shape) for n in self.inputs}

    def convolve(self, x: str, channels: int, window: Window, group: int = 1, nine_bits: bool = False) -> str:
        """A convolution with a table."""
        inputs, kernel = self.shape(x)[0], window.kernel
        weights: NDArray[Any] = self.bytes((channels, inputs // group, kernel, kernel))
        if nine_bits:
            weights = weights - self.bytes((channels,)).astype(np.int16).reshape(-1, 1, 1, 1)
        scales = self.scales(channels, inputs // group * kernel * kernel * (1 + nine_bits))
        values = {"weights": weights, "pads": window.pads, "strides": window.strides, "group": group, **scales}
        return self.node(Conv, (x,), (channels, *window.output(self.shape(x))), **values)

    def node(self, kind: type[Node], inputs: tuple[str, ...], shape: tuple[int, int, int], **values: Any) -> str:
        """Any node."""
        number = len(self.nodes)
        output = self._tensor(f"t{number}", *shape)
        name = f"{kind.__name__.lower()}{number}"
        self.nodes.append(kind(name=name, inputs=inputs, output=output, origin=(name,), **values))
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

    def bytes(self, shape: tuple[int, ...]) -> NDArray[np.int8]:
        """Random bytes."""
        return self.random.integers(-128, 128, shape, dtype=np.int8)

    def scales(self, channels: int, products: int) -> dict[str, Any]:
        """Fields of a convolution whose sums of so many products spread over the int8 range."""
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


def conv(m: Maker, x: str, outputs: int, window: Window) -> str:
    """A convolution."""
    return m.convolve(x, outputs, window)


def zero_points(m: Maker, x: str, outputs: int) -> str:
    """A convolution whose weights have zero points."""
    return m.convolve(x, outputs, _AROUND, nine_bits=True)


def grouped(m: Maker, x: str, outputs: int, window: Window, group: int) -> str:
    """A grouped convolution; depthwise when group = inputs."""
    return m.convolve(x, outputs, replace(window, pad=window.kernel // 2), group)


def transposed(m: Maker, x: str, outputs: int, window: Window) -> str:
    """A transposed convolution."""
    (inputs, height, width), kernel = m.shape(x), window.kernel
    values = {"weights": m.bytes((outputs, inputs, kernel, kernel)), "strides": window.strides}
    height, width = ((n - 1) * window.stride + kernel for n in (height, width))
    return m.node(
        ConvTranspose, (x,), (outputs, height, width), **values, **m.scales(outputs, inputs * kernel * kernel)
    )


def add(m: Maker, x: str) -> str:
    """A sum of two inputs."""
    return m.node(Add, (x, m.input(*m.shape(x))), m.shape(x), affine=m.affine(), table=m.table())


def residual(m: Maker, x: str) -> str:
    """A convolution added to its own input."""
    x = m.convolve(x, m.shape(x)[0], _POINT)
    return m.node(Add, (m.convolve(x, m.shape(x)[0], _AROUND), x), m.shape(x), affine=m.affine())


def matmul(m: Maker, x: str, columns: int) -> str:
    """A product of two inputs over their channels, which fill whole words."""
    channels, height, width = m.shape(x)
    other, scale = m.input(channels, 1, columns), scale_from_float(50 / (_TYPICAL * channels**0.5))
    zeros = {
        "zp_a": m.tensors[x].zero_point,
        "zp_b": m.tensors[other].zero_point,
        "zp_out": int(m.random.integers(-20, 20)),
    }
    values = {"mantissa": scale.mantissa, "shift": scale.shift, "table": m.table(), **zeros}
    return m.node(MatMul, (x, other), (columns, height, width), **values)


def transposed_constant(m: Maker, x: str) -> str:
    """Channels and pixels exchanged, by a product with the identity matrix."""
    (channels, height, width), one = m.shape(x), scale_from_float(1.0)
    values = np.eye(channels, dtype=np.int8).reshape(channels, 1, channels)
    identity = m.node(Constant, (), (channels, 1, channels), values=values)
    m.tensors[identity] = replace(m.tensors[identity], zero_point=0)
    zero = m.tensors[x].zero_point
    scale = {"mantissa": one.mantissa, "shift": one.shift, "zp_a": 0, "zp_b": zero, "zp_out": zero}
    return m.node(MatMul, (identity, x), (height * width, 1, channels), **scale)


def softmax(m: Maker, x: str) -> str:
    """A Softmax over channels."""
    return m.node(Softmax, (x,), m.shape(x), **m.exponentials(m.shape(x)[0]))


def norm(m: Maker, x: str) -> str:
    """A normalization over channels."""
    fields = {"center": bool(m.random.integers(2)), "epsilon": int(m.random.integers(1 << 20))}
    constants = m.random.integers(-(1 << 13), 1 << 13, (2, m.shape(x)[0])).astype(np.int16)
    fields |= {"gamma": constants[0], "beta": constants[1], "zp_in": m.tensors[x].zero_point}
    return m.node(Norm, (x,), m.shape(x), **fields)


def mul(m: Maker, x: str) -> str:
    """A product of two inputs."""
    affine = Affine(int(m.random.integers(1 << 12, 1 << 14)), 0, 1 << 10, 20)
    return m.node(Mul, (x, m.input(*m.shape(x))), m.shape(x), affine=affine, zero_a=3, zero_b=-5)


def table(m: Maker, x: str) -> str:
    """A function of every byte."""
    return m.node(Table, (x,), m.shape(x), table=m.table())


def maxpool(m: Maker, x: str, window: Window) -> str:
    """A maximum over windows."""
    values = {"kernel": (window.kernel,) * 2, "strides": window.strides, "pads": window.pads}
    return m.node(MaxPool, (x,), (m.shape(x)[0], *window.output(m.shape(x))), **values)


def avgpool(m: Maker, x: str, window: Window) -> str:
    """An average over windows."""
    affine = Affine((1 << 20) // (window.kernel * window.kernel), 0, 99, 20)
    values = {"kernel": (window.kernel,) * 2, "strides": window.strides, "pads": window.pads}
    return m.node(AvgPool, (x,), (m.shape(x)[0], *window.output(m.shape(x))), **values, affine=affine, zp_in=-7)


def resize(m: Maker, x: str, factor: int) -> str:
    """An enlargement."""
    channels, height, width = m.shape(x)
    return m.node(Resize, (x,), (channels, height * factor, width * factor), factors=(factor, factor))


def concat(m: Maker, x: str, second: int) -> str:
    """Two convolutions side by side."""
    first, height, width = m.shape(x)
    parts = (m.convolve(x, first, _POINT), m.convolve(x, second, _POINT))
    return m.node(Concat, parts, (first + second, height, width))


def slice_(m: Maker, x: str, start: int, stop: int) -> str:
    """A convolution of some channels."""
    part = m.node(Slice, (x,), (stop - start, *m.shape(x)[1:]), start=start, stop=stop)
    return m.convolve(part, 4, _POINT)


def chain(m: Maker, x: str, nodes: int) -> str:
    """A random chain of operations with branches, decided by the seed."""
    r = m.random
    for _ in range(nodes):
        x = _grow(m, x, int(r.integers(6)))
    return m.convolve(x, int(r.integers(1, 20)), _POINT)


def _grow(m: Maker, x: str, choice: int) -> str:
    r, (channels, height, width) = m.random, m.shape(x)
    if choice == 0 and height * width < 200:
        return m.node(Resize, (x,), (channels, 2 * height, 2 * width), factors=(2, 2))
    if choice == 1:
        return m.node(MaxPool, (x,), (channels, height, width), kernel=(3, 3), pads=(1, 1, 1, 1))
    if choice == 2:
        return m.node(Add, (m.convolve(x, channels, _AROUND), x), (channels, height, width), affine=m.affine())
    if choice == 3:
        other = m.convolve(x, int(r.integers(1, 12)), _POINT)
        return m.node(Concat, (x, other), (channels + m.shape(other)[0], height, width))
    if choice == 4 and min(height, width) > 4:
        return m.convolve(x, int(r.integers(1, 24)), Window(3, 2, 1))
    return m.convolve(x, int(r.integers(1, 24)), Window(int(r.choice([1, 3, 5])), 1, 2))


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
    "norm": norm,
    "zero_points": zero_points,
    "residual": residual,
    "resize": resize,
    "slice": slice_,
    "softmax": softmax,
    "table": table,
    "transposed": transposed,
    "transposed_constant": transposed_constant,
}


_SIZE = (("inputs", "channels", "first"), ("height",), ("width",))
"""Names of the arguments that are channels, height and width of a recipe's image."""


def make_graph(recipe: str, seed: int, arguments: dict[str, Any]) -> tuple[IntGraph, Arrays]:
    """The graph and inputs of a recipe; equal arguments give equal graphs."""
    if recipe not in RECIPES:
        raise UsageError(f"graph must be one of {', '.join(RECIPES)}, not {recipe!r}")
    maker, given = Maker(seed), dict(arguments)
    if recipe == "chain":
        size = [int(maker.random.integers(low, high)) for low, high in ((1, 20), (5, 16), (5, 16))]
    else:
        size = [given.pop(next(name for name in names if name in given)) for names in _SIZE]
    image = maker.input(*size)
    if "kernel" in given:
        given["window"] = Window(**{f.name: given.pop(f.name) for f in fields(Window) if f.name in given})
    return maker.finish(RECIPES[recipe](maker, image, **given))
