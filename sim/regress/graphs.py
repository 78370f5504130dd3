"""Small integer graphs with random weights: a maker of any graph, and recipes by name with plain arguments."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypedDict, Unpack

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

Sizes = int | tuple[int, int]
"""Down and across; one number for both."""
Pads = tuple[int, int, int, int]
"""Above, left, below and right."""
_TYPICAL = 74 * 74
"""About the mean square of a random int8 product's factors: scales that fit it spread sums over the int8 range."""


class Form(TypedDict, total=False):
    """What a convolution has other than stride 1, the size of its image, one group, a table and weights of 8 bits."""

    stride: int | tuple[int, int]
    pads: tuple[int, ...]
    dilation: tuple[int, int]
    group: int
    table: bool
    nine_bits: bool


class Transposed(TypedDict, total=False):
    """What a transposed convolution has other than no padding and one group; `extra` is the output's padding."""

    pad: int | Pads
    extra: Sizes
    group: int


class GraphMaker:
    """Adds nodes to a graph; each method that adds one gives the name of its output."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.tensors: dict[str, Tensor] = {}
        self.nodes: list[Node] = []
        self.inputs: list[str] = []

    def input(self, channels: int, height: int, width: int) -> str:
        """A graph input."""
        name = self._tensor(f"in{len(self.inputs)}", channels, height, width)
        self.inputs.append(name)
        return name

    def graph(self, *outputs: str, name: str = "made") -> IntGraph:
        """The finished graph."""
        return IntGraph(name, dict(self.tensors), tuple(self.nodes), tuple(self.inputs), outputs)

    def random_inputs(self) -> Arrays:
        """Random values for every input."""
        return {n: self.bytes(self.tensors[n].shape) for n in self.inputs}

    def finish(self, output: str) -> tuple[IntGraph, Arrays]:
        """The graph and random inputs for it."""
        return self.graph(output), self.random_inputs()

    def node(self, kind: type[Node], inputs: tuple[str, ...], shape: tuple[int, int, int], **values: Any) -> str:
        """Any node."""
        number = len(self.nodes)
        output = self._tensor(f"t{number}", *shape)
        name = f"{kind.__name__.lower()}{number}"
        self.nodes.append(kind(name=name, inputs=inputs, output=output, origin=(name,), **values))
        return output

    def affine(self) -> Affine:
        """Constants of a sum that seldom saturates."""
        m1, m2 = (int(m) for m in self.rng.integers(1 << 14, 1 << 16, 2))
        return Affine(m1, m2, int(self.rng.integers(-(1 << 20), 1 << 20)), 17, bool(self.rng.integers(2)))

    def table(self) -> bytes:
        """A random table."""
        return bytes(self.rng.integers(0, 256, 256).astype(np.uint8))

    def exponentials(self, channels: int) -> dict[str, Any]:
        """Exponentials of a random base whose sum of `channels` fits, and the other fields of a Softmax."""
        numbers = largest_exponential(channels) * self.rng.uniform(0.6, 0.999) ** np.arange(255.0, -1, -1)
        packed = pack_exponentials(int(n) for n in numbers)
        zero_point = int(self.rng.choice((-128, int(self.rng.integers(-128, 128)))))
        return {"exponentials": packed, "less": int(self.rng.integers(4)), "zp_out": zero_point}

    def shape(self, tensor: str) -> tuple[int, int, int]:
        """Channels, height and width."""
        return self.tensors[tensor].shape[1:]

    def bytes(self, shape: tuple[int, ...]) -> NDArray[np.int8]:
        """Random bytes."""
        return self.rng.integers(-128, 128, shape, dtype=np.int8)

    def scales(self, channels: int, products: int) -> dict[str, Any]:
        """Fields of a convolution whose sums of so many products spread over the int8 range."""
        typical = _TYPICAL * np.sqrt(products)
        mantissa, exponent = np.frexp(50 / typical * self.rng.uniform(0.5, 2.0, channels))
        return {
            "bias": self.rng.integers(-int(typical), int(typical) + 1, channels).astype(np.int32),
            "mantissa": np.round(mantissa * (1 << 23)).astype(np.uint32) << 1,
            "shift": (24 - exponent).astype(np.uint8),
            "zp_in": int(self.rng.integers(-20, 20)),
            "zp_out": int(self.rng.integers(-20, 20)),
            "table": self.table(),
        }

    def conv(self, x: str, channels: int, kernel: int | tuple[int, int] = 1, **form: Unpack[Form]) -> str:
        """A convolution."""
        stride, dilation, group = form.get("stride", 1), form.get("dilation", (1, 1)), form.get("group", 1)
        kernel = (kernel, kernel) if isinstance(kernel, int) else kernel
        strides = (stride, stride) if isinstance(stride, int) else stride
        reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
        pads = form.get("pads", (reach[0] // 2, reach[1] // 2, reach[0] // 2, reach[1] // 2))
        inputs, height, width = self.shape(x)
        size = [(n + pads[a] + pads[a + 2] - reach[a]) // strides[a] + 1 for a, n in enumerate((height, width))]
        weights: NDArray[Any] = self.bytes((channels, inputs // group, *kernel))
        if form.get("nine_bits"):
            zero_points = self.bytes((channels,)).astype(np.int16)
            zero_points[:7] = np.array([-128, -127, -1, 0, 1, 126, 127])[:channels]
            weights = weights - zero_points.reshape(-1, 1, 1, 1)
        fields = self.scales(channels, inputs // group * kernel[0] * kernel[1])
        fields |= {} if form.get("table", True) else {"table": None}
        return self.node(
            Conv, (x,), (channels, size[0], size[1]),
            weights=weights, pads=pads, strides=strides, dilations=dilation, group=group, **fields,
        )  # fmt: skip

    def transposed(self, x: str, channels: int, kernel: Sizes, stride: Sizes, **more: Unpack[Transposed]) -> str:
        """A transposed convolution."""
        kernel, strides, extra = (_two(n) for n in (kernel, stride, more.get("extra", 0)))
        pads, group = _four(more.get("pad", 0)), more.get("group", 1)
        inputs, *size = self.shape(x)
        height, width = (
            (n - 1) * strides[axis] + kernel[axis] - pads[axis] - pads[axis + 2] + extra[axis]
            for axis, n in enumerate(size)
        )
        weights = self.bytes((channels, inputs // group, *kernel))
        fields = self.scales(channels, inputs // group * math.prod(kernel))
        return self.node(
            ConvTranspose, (x,), (channels, height, width),
            weights=weights, pads=pads, strides=strides, group=group, output_padding=extra, **fields,
        )  # fmt: skip

    def apply_table(self, x: str) -> str:
        """A table."""
        return self.node(Table, (x,), self.shape(x), table=self.table())

    def add(self, a: str, b: str, *, table: bool = False) -> str:
        """A sum; a pixel is broadcast."""
        shape = max(self.shape(a), self.shape(b), key=lambda s: s[1] * s[2])
        return self.node(Add, (a, b), shape, affine=self.affine(), table=self.table() if table else None)

    def mul(self, a: str, b: str, *, table: bool = False) -> str:
        """A product."""
        affine = Affine(int(self.rng.integers(1 << 12, 1 << 14)), 0, 1 << 10, 20)
        shape = max(self.shape(a), self.shape(b), key=lambda s: s[1] * s[2])
        extra = {"zero_a": int(self.rng.integers(-9, 9)), "zero_b": int(self.rng.integers(-9, 9))}
        return self.node(Mul, (a, b), shape, affine=affine, table=self.table() if table else None, **extra)

    def max_pool(self, x: str, kernel: Sizes, stride: Sizes = 1, pad: int | Pads = 0) -> str:
        """A maximum over windows."""
        shape, window = self._pooled(x, kernel, stride, pad)
        return self.node(MaxPool, (x,), shape, **window)

    def avg_pool(self, x: str, kernel: Sizes, stride: Sizes = 1, pad: int | Pads = 0, *, table: bool = False) -> str:
        """An average over windows."""
        shape, window = self._pooled(x, kernel, stride, pad)
        affine = Affine((1 << 20) // math.prod(window["kernel"]), 0, int(self.rng.integers(-999, 999)), 20)
        return self.node(AvgPool, (x,), shape, zp_in=-7, table=self.table() if table else None, affine=affine, **window)

    def resize(self, x: str, factor_h: int = 2, factor_w: int = 2) -> str:
        """An enlargement."""
        channels, height, width = self.shape(x)
        return self.node(Resize, (x,), (channels, height * factor_h, width * factor_w), factors=(factor_h, factor_w))

    def concat(self, *parts: str) -> str:
        """A concatenation."""
        _, height, width = self.shape(parts[0])
        return self.node(Concat, parts, (sum(self.shape(p)[0] for p in parts), height, width))

    def slice(self, x: str, start: int, stop: int) -> str:
        """A slice along channels."""
        _, height, width = self.shape(x)
        return self.node(Slice, (x,), (stop - start, height, width), start=start, stop=stop)

    def _pooled(
        self, x: str, kernel: Sizes, stride: Sizes, pad: int | Pads
    ) -> tuple[tuple[int, int, int], dict[str, tuple[int, ...]]]:
        """The result's shape, and the window's fields."""
        kernel, strides, pads = _two(kernel), _two(stride), _four(pad)
        channels, *size = self.shape(x)
        height, width = (
            (n + pads[axis] + pads[axis + 2] - kernel[axis]) // strides[axis] + 1 for axis, n in enumerate(size)
        )
        return (channels, height, width), {"kernel": kernel, "strides": strides, "pads": pads}

    def _tensor(self, name: str, channels: int, height: int, width: int) -> str:
        self.tensors[name] = Tensor(name, (1, channels, height, width), 0.05, int(self.rng.integers(-20, 20)), False)
        return name


def _two(sizes: Sizes) -> tuple[int, int]:
    return (sizes, sizes) if isinstance(sizes, int) else sizes


def _four(pads: int | Pads) -> Pads:
    return (pads, pads, pads, pads) if isinstance(pads, int) else pads


Recipe = Callable[..., str]
"""Gives the output of a graph for a maker, the image and plain arguments."""


def matmul(m: GraphMaker, x: str, columns: int) -> str:
    """A product of two inputs over their channels, which fill whole words."""
    channels, height, width = m.shape(x)
    other, scale = m.input(channels, 1, columns), scale_from_float(50 / (_TYPICAL * channels**0.5))
    zeros = {
        "zp_a": m.tensors[x].zero_point,
        "zp_b": m.tensors[other].zero_point,
        "zp_out": int(m.rng.integers(-20, 20)),
    }
    values = {"mantissa": scale.mantissa, "shift": scale.shift, "table": m.table(), **zeros}
    return m.node(MatMul, (x, other), (columns, height, width), **values)


def transposed_constant(m: GraphMaker, x: str) -> str:
    """Channels and pixels exchanged, by a product with the identity matrix."""
    (channels, height, width), one = m.shape(x), scale_from_float(1.0)
    values = np.eye(channels, dtype=np.int8).reshape(channels, 1, channels)
    identity = m.node(Constant, (), (channels, 1, channels), values=values)
    m.tensors[identity] = replace(m.tensors[identity], zero_point=0)
    zero = m.tensors[x].zero_point
    scale = {"mantissa": one.mantissa, "shift": one.shift, "zp_a": 0, "zp_b": zero, "zp_out": zero}
    return m.node(MatMul, (identity, x), (height * width, 1, channels), **scale)


def softmax(m: GraphMaker, x: str) -> str:
    """A Softmax over channels."""
    return m.node(Softmax, (x,), m.shape(x), **m.exponentials(m.shape(x)[0]))


def norm(m: GraphMaker, x: str) -> str:
    """A normalization over channels."""
    fields = {"center": bool(m.rng.integers(2)), "epsilon": int(m.rng.integers(1 << 20))}
    constants = m.rng.integers(-(1 << 13), 1 << 13, (2, m.shape(x)[0])).astype(np.int16)
    fields |= {"gamma": constants[0], "beta": constants[1], "zp_in": m.tensors[x].zero_point}
    return m.node(Norm, (x,), m.shape(x), **fields)


def residual(m: GraphMaker, x: str) -> str:
    """A convolution added to its own input."""
    x = m.conv(x, m.shape(x)[0])
    return m.add(m.conv(x, m.shape(x)[0], 3), x)


def concat(m: GraphMaker, x: str, second: int) -> str:
    """Two convolutions side by side."""
    return m.concat(m.conv(x, m.shape(x)[0]), m.conv(x, second))


def chain(m: GraphMaker, x: str, nodes: int) -> str:
    """A random chain of operations with branches, decided by the seed."""
    r = m.rng
    for _ in range(nodes):
        x = _grow(m, x, int(r.integers(6)))
    return m.conv(x, int(r.integers(1, 20)))


def _grow(m: GraphMaker, x: str, choice: int) -> str:
    r, (channels, height, width) = m.rng, m.shape(x)
    if choice == 0 and height * width < 200:
        return m.resize(x)
    if choice == 1:
        return m.max_pool(x, 3, pad=1)
    if choice == 2:
        return m.add(m.conv(x, channels, 3), x)
    if choice == 3:
        return m.concat(x, m.conv(x, int(r.integers(1, 12))))
    if choice == 4 and min(height, width) > 4:
        return m.conv(x, int(r.integers(1, 24)), 3, stride=2)
    return m.conv(x, int(r.integers(1, 24)), int(r.choice([1, 3, 5])), pads=(2,) * 4)


RECIPES: dict[str, Recipe] = {
    "add": lambda m, x: m.add(x, m.input(*m.shape(x)), table=True),
    "avgpool": lambda m, x, kernel, stride, pad: m.avg_pool(x, kernel, stride, pad),
    "chain": chain,
    "concat": concat,
    "conv": lambda m, x, outputs, kernel, stride, pad: m.conv(x, outputs, kernel, stride=stride, pads=(pad,) * 4),
    "grouped": lambda m, x, outputs, kernel, stride, group: m.conv(x, outputs, kernel, stride=stride, group=group),
    "matmul": matmul,
    "maxpool": lambda m, x, kernel, stride, pad: m.max_pool(x, kernel, stride, pad),
    "mul": lambda m, x: m.mul(x, m.input(*m.shape(x))),
    "norm": norm,
    "zero_points": lambda m, x, outputs: m.conv(x, outputs, 3, nine_bits=True),
    "residual": residual,
    "resize": lambda m, x, factor: m.resize(x, factor, factor),
    "slice": lambda m, x, start, stop: m.conv(m.slice(x, start, stop), 4),
    "softmax": softmax,
    "table": lambda m, x: m.apply_table(x),
    "transposed": lambda m, x, outputs, kernel, stride: m.transposed(x, outputs, kernel, stride),
    "transposed_constant": transposed_constant,
}


_SIZE = (("inputs", "channels", "first"), ("height",), ("width",))
"""Names of the arguments that are channels, height and width of a recipe's image."""


def make_graph(recipe: str, seed: int, arguments: dict[str, Any]) -> tuple[IntGraph, Arrays]:
    """The graph and inputs of a recipe; equal arguments give equal graphs."""
    if recipe not in RECIPES:
        raise UsageError(f"graph must be one of {', '.join(RECIPES)}, not {recipe!r}")
    maker, given = GraphMaker(seed), dict(arguments)
    if recipe == "chain":
        size = [int(maker.rng.integers(low, high)) for low, high in ((1, 20), (5, 16), (5, 16))]
    else:
        size = [given.pop(next(name for name in names if name in given)) for names in _SIZE]
    image = maker.input(*size)
    return maker.finish(RECIPES[recipe](maker, image, **given))
