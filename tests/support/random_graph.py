"""Random small integer graphs over all operations, and random legal hardware for them."""

from dataclasses import replace

import numpy as np

from intloom.common.errors import ParameterError
from intloom.compiler.ir import Conv, IntGraph, Node
from intloom.hw.spec.arith import FP32_SIGNIFICAND_BITS, RoundingMode
from intloom.hw.spec.isa import Kind
from intloom.hw.spec.params import HardwareParams
from intloom.hw.vector.operation import kinds_of
from intloom.sim.regress.graphs import GraphMaker

_MOST_VALUES = 20_000
_SUM_BITS = 27
"""Of the largest convolution."""
_CHANNELS = (1, 3, 4, 8, 12, 16, 20, 32, 33, 48)

_MOST_TRANSPOSED = 96
"""Channels of the largest operand: a transposed layer is not cut, and every shape's weight memory must hold it."""


class RandomGraph:
    """Grows a graph from random operations; `pool` holds the tensors to choose from."""

    def __init__(self, seed: int) -> None:
        self.maker = GraphMaker(seed)
        self.rng = self.maker.rng
        self.pool: list[str] = []

    def pick(self) -> str:
        """A tensor, newer ones more often."""
        back = min(int(self.rng.geometric(0.4)), len(self.pool))
        return self.pool[-back]

    def channels(self) -> int:
        return int(self.rng.choice(_CHANNELS))

    def conv(self) -> str:
        m, rng, x = self.maker, self.rng, self.pick()
        kernel = (int(rng.integers(1, 6)), int(rng.integers(1, 6)))
        stride = (int(rng.integers(1, 4)), int(rng.integers(1, 4)))
        dilation = (int(rng.integers(1, 3)), int(rng.integers(1, 3)))
        pads = tuple(int(p) for p in rng.integers(0, 3, 4))
        reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
        _, height, width = m.shape(x)
        if height + pads[0] + pads[2] < reach[0] or width + pads[1] + pads[3] < reach[1]:
            return m.conv(x, self.channels(), 1)
        nine_bits = bool(rng.integers(4) == 0)
        table = bool(rng.integers(2))
        fields = {"stride": stride, "dilation": dilation, "pads": pads, "nine_bits": nine_bits, "table": table}
        return m.conv(x, self.channels(), kernel, **fields)

    def grouped(self) -> str:
        m, x = self.maker, self.pick()
        inputs = m.shape(x)[0]
        groups = [g for g in range(1, inputs + 1) if inputs % g == 0]
        group = int(self.rng.choice(groups))
        return m.conv(x, group * int(self.rng.integers(1, 4)), 3, group=group, table=bool(self.rng.integers(2)))

    def depthwise(self) -> str:
        m, rng, x = self.maker, self.rng, self.pick()
        channels, height, width = m.shape(x)
        kernel = tuple(int(k) for k in rng.choice([1, 2, 3, 3, 3, 5, 7], 2))
        stride = tuple(int(s) for s in rng.integers(1, 4, 2))
        dilation = tuple(int(d) for d in rng.choice([1, 1, 2, 3], 2))
        reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
        pads = tuple(int(p) for p in rng.integers(0, 4, 4))
        if height + pads[0] + pads[2] < reach[0] or width + pads[1] + pads[3] < reach[1]:
            return m.conv(x, channels, 3, stride=int(rng.integers(1, 3)), group=channels)
        fields = {"nine_bits": bool(rng.integers(4) == 0), "table": bool(rng.integers(2))}
        y = m.conv(x, channels, kernel, stride=stride, dilation=dilation, pads=pads, group=channels, **fields)
        return m.add(x, y) if m.shape(y) == m.shape(x) and rng.integers(2) else y

    def transposed(self) -> str:
        m, rng, x = self.maker, self.rng, self.pick()
        if m.shape(x)[0] > _MOST_TRANSPOSED:
            return self.conv()
        kernel, stride = (tuple(int(n) for n in rng.integers(1, most, 2)) for most in (5, 4))
        pad = tuple(int(rng.integers(0, (k + 1) // 2)) for k in kernel * 2)
        extra = tuple(int(rng.integers(0, s)) for s in stride)
        group = m.shape(x)[0] if rng.integers(4) == 0 else 1
        if (min(m.shape(x)[1:]) - 1) * min(stride) + min(kernel) + min(extra) <= 2 * max(pad):
            pad = 0
        channels = m.shape(x)[0] if group > 1 else self.channels()
        return m.transposed(x, channels, kernel, stride, pad=pad, extra=extra, group=group)

    def residual(self) -> str:
        m, x = self.maker, self.pick()
        y = m.conv(x, m.shape(x)[0], 3, table=bool(self.rng.integers(2)))
        return m.add(*((x, y) if self.rng.integers(2) else (y, x)))

    def table(self) -> str:
        return self.maker.apply_table(self.pick())

    def add(self) -> str:
        x = self.pick()
        return self.maker.add(x, self._alike(x), table=bool(self.rng.integers(2)))

    def mul(self) -> str:
        m, x = self.maker, self.pick()
        other = self._alike(x)
        if self.rng.integers(2) and min(m.shape(x)[1:]) == max(m.shape(x)[1:]) <= 20:
            other = m.conv(m.avg_pool(x, m.shape(x)[1]), m.shape(x)[0], 1)
        return m.mul(x, other, table=bool(self.rng.integers(2)))

    def _alike(self, x: str) -> str:
        shape = self.maker.shape(x)
        found = [t for t in self.pool if self.maker.shape(t) == shape]
        return str(self.rng.choice(found))

    def max_pool(self) -> str:
        x = self.pick()
        return self.maker.max_pool(x, *self._window(x))

    def avg_pool(self) -> str:
        x = self.pick()
        return self.maker.avg_pool(x, *self._window(x), table=True)

    def _window(self, x: str) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int, int, int]]:
        """Kernel, strides and padding."""
        kernel_h, kernel_w = (int(self.rng.integers(1, min(5, n) + 1)) for n in self.maker.shape(x)[1:])
        stride_h, stride_w = (int(n) for n in self.rng.integers(1, 4, 2))
        top, left, bottom, right = (int(self.rng.integers(0, k // 2 + 1)) for k in (kernel_h, kernel_w) * 2)
        return (kernel_h, kernel_w), (stride_h, stride_w), (top, left, bottom, right)

    def resize(self) -> str:
        return self.maker.resize(self.pick(), int(self.rng.integers(1, 4)), int(self.rng.integers(1, 4)))

    def concat(self) -> str:
        x = self.pick()
        size = self.maker.shape(x)[1:]
        alike = [t for t in self.pool if self.maker.shape(t)[1:] == size]
        count = int(self.rng.integers(1, 5))
        return self.maker.concat(*(str(t) for t in self.rng.choice(alike, count)))

    def slice(self) -> str:
        x = self.pick()
        channels = self.maker.shape(x)[0]
        start = int(self.rng.integers(0, channels))
        return self.maker.slice(x, start, int(self.rng.integers(start + 1, channels + 1)))

    def split(self) -> str:
        x = self.pick()
        channels = self.maker.shape(x)[0]
        if channels % 2:
            return self.slice()
        parts = [self.maker.slice(x, 0, channels // 2), self.maker.slice(x, channels // 2, channels)]
        self.pool += parts
        last = self.maker.conv(parts[-1], channels // 2, 3)
        return self.maker.concat(*parts, last)


_OPERATIONS = (
    *("conv", "conv", "grouped", "depthwise", "transposed", "residual", "table", "add", "mul"),
    *("max_pool", "avg_pool", "resize", "concat", "slice", "split"),
)


_KINDS = {"mul": Kind.VMUL, "avg_pool": Kind.VAVG}
"""Instructions of operations that need an option of the hardware."""


def random_graph(seed: int, nodes: int = 7, params: HardwareParams | None = None) -> tuple[IntGraph, GraphMaker]:
    """A graph of about `nodes` nodes with one to three outputs, some of them inside the graph.

    With `params`, one that this hardware can run.
    """
    made = RandomGraph(seed)
    rng = made.rng
    height, width = (int(n) for n in rng.integers(3, 25, 2))
    made.pool.append(made.maker.input(made.channels(), height, width if rng.integers(2) else height))
    if rng.integers(4) == 0:
        made.pool.append(made.maker.input(made.channels(), height, width))
    lacks = {name for name, kind in _KINDS.items() if params is not None and kind not in kinds_of(params)}
    operations = [name for name in _OPERATIONS if name not in lacks]
    for _ in range(nodes):
        name = getattr(made, str(rng.choice(operations)))()
        shape = made.maker.shape(name)
        if np.prod(shape) <= _MOST_VALUES:
            made.pool.append(name)
    tensors = [n.output for n in made.maker.nodes]
    outputs = dict.fromkeys([tensors[-1], *(str(t) for t in rng.choice(tensors, int(rng.integers(0, 3))))])
    graph = made.maker.graph(*outputs, name=f"random{seed}")
    return graph if params is None else _for_hardware(graph, params), made.maker


def _for_hardware(graph: IntGraph, params: HardwareParams) -> IntGraph:
    """The graph with scales and sums that the hardware can hold."""
    zeros = np.uint32((1 << FP32_SIGNIFICAND_BITS - params.mantissa_bits) - 1)
    narrow = max(0, _SUM_BITS - params.acc_bits)

    def held(node: Node) -> Node:
        if not isinstance(node, Conv):
            return node
        weights, bias = node.weights >> narrow, node.bias >> narrow
        return replace(node, mantissa=node.mantissa & ~zeros, weights=weights, bias=bias)

    return replace(graph, nodes=tuple(map(held, graph.nodes)))


def random_params(seed: int) -> HardwareParams:
    """Random legal parameters, small memories included."""
    rng = np.random.default_rng(seed)
    while True:
        rows, cols = int(rng.choice([4, 8, 16, 32])), int(rng.choice([4, 8, 16, 32, 64]))
        if rng.integers(2):
            cols = rows
        try:
            return HardwareParams(
                rows=rows,
                cols=cols,
                lanes=int(rng.choice([1, 2, 4, 8, 16, 32])),
                strip=int(rng.choice([16, 32, 64, 128])),
                scratch_kib=int(rng.choice([4, 8, 16, 32, 256])),
                weight_kib=int(rng.choice([8, 16, 32, 64, 128])),
                match=RoundingMode(str(rng.choice(["ort", "exact"]))),
                queue_depth=int(rng.choice([2, 4, 8])),
            )
        except ParameterError:
            continue


def with_options(params: HardwareParams, seed: int) -> HardwareParams:
    """The same memories and array with random options."""
    rng = np.random.default_rng(seed)
    return params.replace(
        vector_lanes=params.rows >> int(rng.integers(0, 3)),
        mantissa_bits=24 if params.match is RoundingMode.ORT else int(rng.integers(8, 25)),
        acc_bits=int(rng.choice([24, 32])),
        **{name: bool(rng.integers(2)) for name in ("vector_depthwise", "word_code", "constant_check")},
    )
