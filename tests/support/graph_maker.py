"""Builds integer graphs with random weights, node by node, for tests."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compiler.ir import (
    Add,
    AvgPool,
    Concat,
    Conv,
    ConvTranspose,
    IntGraph,
    MaxPool,
    Mul,
    Node,
    Resize,
    Slice,
    Table,
    Tensor,
)
from hw.spec.arith import Affine


class GraphMaker:
    """Adds nodes by calls; each gives the name of its output tensor."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.tensors: dict[str, Tensor] = {}
        self.nodes: list[Node] = []
        self.inputs: list[str] = []

    def graph(self, *outputs: str, name: str = "made") -> IntGraph:
        """The finished graph."""
        return IntGraph(name, dict(self.tensors), tuple(self.nodes), tuple(self.inputs), outputs)

    def random_inputs(self) -> dict[str, NDArray[np.int8]]:
        """Random values for every input."""
        return {n: self.rng.integers(-128, 128, self.tensors[n].shape, dtype=np.int8) for n in self.inputs}

    def input(self, channels: int, height: int, width: int) -> str:
        """A graph input."""
        name = f"in{len(self.inputs)}"
        self.inputs.append(name)
        return self._tensor(name, channels, height, width)

    def shape(self, tensor: str) -> tuple[int, int, int]:
        """Channels, height, width."""
        t = self.tensors[tensor]
        return t.channels, t.height, t.width

    def table(self) -> bytes:
        """A random table, not a permutation."""
        return bytes(self.rng.integers(0, 256, 256).astype(np.uint8))

    def law(self) -> Affine:
        """Random constants of a sum that rarely saturates."""
        m1, m2 = (int(m) for m in self.rng.integers(1 << 14, 1 << 16, 2))
        return Affine(m1, m2, int(self.rng.integers(-(1 << 20), 1 << 20)), 17, bool(self.rng.integers(2)))

    def conv(
        self,
        x: str,
        channels: int,
        kernel: int | tuple[int, int] = 1,
        *,
        stride: int | tuple[int, int] = 1,
        pads: tuple[int, int, int, int] | None = None,
        dilation: tuple[int, int] = (1, 1),
        group: int = 1,
        table: bool = True,
        planes: int = 1,
    ) -> str:
        """A convolution, by default of the same size (for stride 1)."""
        kernel = (kernel, kernel) if isinstance(kernel, int) else kernel
        strides = (stride, stride) if isinstance(stride, int) else stride
        reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
        pads = pads or (reach[0] // 2, reach[1] // 2, reach[0] // 2, reach[1] // 2)
        inputs, height, width = self.shape(x)
        size = [(n + pads[a] + pads[a + 2] - reach[a]) // strides[a] + 1 for a, n in enumerate((height, width))]
        weights = self._weights(planes, channels, inputs // group, kernel)
        fields = self._quantisation(channels, inputs // group * kernel[0] * kernel[1], table)
        return self._node(
            Conv, (x,), (channels, size[0], size[1]),
            weights=weights, pads=pads, strides=strides, dilations=dilation, group=group, **fields,
        )  # fmt: skip

    def transposed(
        self, x: str, channels: int, kernel: int, stride: int, *, pad: int = 0, extra: int = 0, group: int = 1
    ) -> str:
        """A transposed convolution."""
        inputs, height, width = self.shape(x)
        size = [(n - 1) * stride + kernel - 2 * pad + extra for n in (height, width)]
        weights = self._weights(1, channels, inputs // group, (kernel, kernel))
        fields = self._quantisation(channels, inputs // group * kernel * kernel, True)
        return self._node(
            ConvTranspose, (x,), (channels, size[0], size[1]),
            weights=weights, pads=(pad,) * 4, strides=(stride,) * 2, group=group, output_padding=(extra,) * 2, **fields,
        )  # fmt: skip

    def apply_table(self, x: str) -> str:
        """A table."""
        return self._node(Table, (x,), self.shape(x), table=self.table())

    def add(self, a: str, b: str, *, table: bool = False) -> str:
        """A sum."""
        return self._node(Add, (a, b), self.shape(a), law=self.law(), table=self.table() if table else None)

    def mul(self, a: str, b: str, *, table: bool = False) -> str:
        """A product."""
        law = Affine(int(self.rng.integers(1 << 12, 1 << 14)), 0, 1 << 10, 20)
        shape = max(self.shape(a), self.shape(b), key=lambda s: s[1] * s[2])
        extra = {"zero_a": int(self.rng.integers(-9, 9)), "zero_b": int(self.rng.integers(-9, 9))}
        return self._node(Mul, (a, b), shape, law=law, table=self.table() if table else None, **extra)

    def max_pool(self, x: str, kernel: int, stride: int = 1, pad: int = 0) -> str:
        """A maximum over windows."""
        shape = self._pooled(x, kernel, stride, pad)
        return self._node(MaxPool, (x,), shape, kernel=(kernel, kernel), strides=(stride, stride), pads=(pad,) * 4)

    def avg_pool(self, x: str, kernel: int, stride: int = 1, pad: int = 0, *, table: bool = False) -> str:
        """An average over windows."""
        shape = self._pooled(x, kernel, stride, pad)
        law = Affine((1 << 20) // (kernel * kernel), 0, int(self.rng.integers(-999, 999)), 20)
        fields = {"kernel": (kernel, kernel), "strides": (stride, stride), "pads": (pad,) * 4, "law": law}
        return self._node(AvgPool, (x,), shape, zp_in=-7, table=self.table() if table else None, **fields)

    def resize(self, x: str, factor_h: int = 2, factor_w: int = 2) -> str:
        """An enlargement."""
        channels, height, width = self.shape(x)
        return self._node(Resize, (x,), (channels, height * factor_h, width * factor_w), factors=(factor_h, factor_w))

    def concat(self, *parts: str) -> str:
        """A concatenation."""
        _, height, width = self.shape(parts[0])
        return self._node(Concat, parts, (sum(self.shape(p)[0] for p in parts), height, width))

    def slice(self, x: str, start: int, stop: int) -> str:
        """A slice along channels."""
        _, height, width = self.shape(x)
        return self._node(Slice, (x,), (stop - start, height, width), start=start, stop=stop)

    def _pooled(self, x: str, kernel: int, stride: int, pad: int) -> tuple[int, int, int]:
        channels, height, width = self.shape(x)
        return channels, (height + 2 * pad - kernel) // stride + 1, (width + 2 * pad - kernel) // stride + 1

    def _weights(self, planes: int, channels: int, inputs: int, kernel: tuple[int, int]) -> NDArray[np.int8]:
        return self.rng.integers(-128, 128, (planes, channels, inputs, *kernel), dtype=np.int8)

    def _quantisation(self, channels: int, products: int, table: bool) -> dict[str, object]:
        """Scales that spread random sums over the int8 range."""
        typical = 74 * 74 * np.sqrt(products)
        factor = 50 / typical * self.rng.uniform(0.5, 2.0, channels)
        mantissa, exponent = np.frexp(factor)
        return {
            "bias": self.rng.integers(-int(typical), int(typical) + 1, channels).astype(np.int32),
            "mantissa": np.round(mantissa * (1 << 23)).astype(np.uint32) << 1,
            "shift": (24 - exponent).astype(np.uint8),
            "zp_in": int(self.rng.integers(-20, 20)),
            "zp_out": int(self.rng.integers(-20, 20)),
            "table": self.table() if table else None,
        }

    def _node(self, kind: type[Node], inputs: tuple[str, ...], shape: tuple[int, int, int], **fields: object) -> str:
        number = len(self.nodes)
        output = self._tensor(f"t{number}", *shape)
        name = f"{kind.__name__.lower()}{number}"
        self.nodes.append(kind(name=name, inputs=inputs, output=output, origin=(name,), **fields))
        return output

    def _tensor(self, name: str, channels: int, height: int, width: int) -> str:
        zero = int(self.rng.integers(-20, 20))
        self.tensors[name] = Tensor(name, (1, channels, height, width), 0.05, zero, True)
        return name
