"""Integer graphs with random weights for tests: the regression's maker, with every field of a node to choose."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.ir import Add, AvgPool, Concat, Conv, ConvTranspose, IntGraph, MaxPool, Mul, Resize, Slice, Table
from intloom.hw.spec.arith import Affine
from intloom.sim.regress.graphs import Maker


class GraphMaker(Maker):
    """Adds nodes by calls; each gives the name of its output tensor."""

    @property
    def rng(self) -> np.random.Generator:
        """The source of all random values."""
        return self.random

    def graph(self, *outputs: str, name: str = "made") -> IntGraph:
        """The finished graph."""
        return IntGraph(name, dict(self.tensors), tuple(self.nodes), tuple(self.inputs), outputs)

    def random_inputs(self) -> dict[str, NDArray[np.int8]]:
        """Random values for every input."""
        return {n: self.bytes(self.tensors[n].shape) for n in self.inputs}

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
        nine_bits: bool = False,
    ) -> str:
        """A convolution, by default of the same size (for stride 1)."""
        kernel = (kernel, kernel) if isinstance(kernel, int) else kernel
        strides = (stride, stride) if isinstance(stride, int) else stride
        reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
        pads = pads or (reach[0] // 2, reach[1] // 2, reach[0] // 2, reach[1] // 2)
        inputs, height, width = self.shape(x)
        size = [(n + pads[a] + pads[a + 2] - reach[a]) // strides[a] + 1 for a, n in enumerate((height, width))]
        weights: NDArray[Any] = self.bytes((channels, inputs // group, *kernel))
        if nine_bits:
            zero_points = self.bytes((channels,)).astype(np.int16)
            zero_points[:7] = np.array([-128, -127, -1, 0, 1, 126, 127])[:channels]
            weights = weights - zero_points.reshape(-1, 1, 1, 1)
        fields = self.scales(channels, inputs // group * kernel[0] * kernel[1])
        fields |= {} if table else {"table": None}
        return self.node(
            Conv, (x,), (channels, size[0], size[1]),
            weights=weights, pads=pads, strides=strides, dilations=dilation, group=group, **fields,
        )  # fmt: skip

    def transposed(
        self, x: str, channels: int, kernel: int, stride: int, *, pad: int = 0, extra: int = 0, group: int = 1
    ) -> str:
        """A transposed convolution."""
        inputs, height, width = self.shape(x)
        size = [(n - 1) * stride + kernel - 2 * pad + extra for n in (height, width)]
        weights = self.bytes((channels, inputs // group, kernel, kernel))
        fields = self.scales(channels, inputs // group * kernel * kernel)
        return self.node(
            ConvTranspose, (x,), (channels, size[0], size[1]),
            weights=weights, pads=(pad,) * 4, strides=(stride,) * 2, group=group, output_padding=(extra,) * 2, **fields,
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

    def max_pool(self, x: str, kernel: int, stride: int = 1, pad: int = 0) -> str:
        """A maximum over windows."""
        shape = self._pooled(x, kernel, stride, pad)
        return self.node(MaxPool, (x,), shape, kernel=(kernel, kernel), strides=(stride, stride), pads=(pad,) * 4)

    def avg_pool(self, x: str, kernel: int, stride: int = 1, pad: int = 0, *, table: bool = False) -> str:
        """An average over windows."""
        shape = self._pooled(x, kernel, stride, pad)
        affine = Affine((1 << 20) // (kernel * kernel), 0, int(self.rng.integers(-999, 999)), 20)
        fields = {"kernel": (kernel, kernel), "strides": (stride, stride), "pads": (pad,) * 4, "affine": affine}
        return self.node(AvgPool, (x,), shape, zp_in=-7, table=self.table() if table else None, **fields)

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

    def _pooled(self, x: str, kernel: int, stride: int, pad: int) -> tuple[int, int, int]:
        channels, height, width = self.shape(x)
        return channels, (height + 2 * pad - kernel) // stride + 1, (width + 2 * pad - kernel) // stride + 1
