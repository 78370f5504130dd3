"""Spatial operations built from accelerator operations: padding, cropping, striding, joining.

All keep scale and zero point. Padding is an average over single pixels, whose padding may be any byte. Cropping and
selecting every n-th pixel is a depthwise convolution whose kernel has a single 1.
"""

from dataclasses import dataclass, replace

import numpy as np

from intloom.compiler.fold.arithmetic.affine_fit import IDENTITY, SUM
from intloom.compiler.fold.graph_builder import GraphBuilder
from intloom.compiler.ir import Add, AvgPool, Node, Tensor
from intloom.compiler.ir.node import Pads
from intloom.compiler.ir.ops.conv import moving_conv
from intloom.compiler.limits import LARGEST_KERNEL, LARGEST_STRIDE
from intloom.compiler.refusals import Refusal

_MOST_CROPS = 4
"""Convolutions in a row for one selection: each crops at most `LARGEST_KERNEL - 1` rows and columns."""


@dataclass(frozen=True)
class Steps:
    """Selected pixels of an axis: `start`, `start + step`, …, less than `stop`."""

    start: int
    stop: int
    step: int = 1

    @property
    def count(self) -> int:
        """Number of selected pixels."""
        return len(range(self.start, self.stop, self.step))

    @property
    def last(self) -> int:
        """The last selected pixel."""
        return self.start + (self.count - 1) * self.step


@dataclass(frozen=True)
class SpatialOps:
    """Emits spatial operations for one unit."""

    builder: GraphBuilder
    origin: tuple[str, ...]

    def emit(self, node: Node, like: Tensor, size: tuple[int, int]) -> Tensor:
        """Add a node whose result has the scale of `like` and another height and width; return the result."""
        result = replace(like, name=node.output, shape=(1, like.channels, *size))
        self.builder.emit(replace(node, origin=self.origin), result)
        return result

    def pad(self, x: Tensor, pads: Pads, value: int, name: str) -> Tensor:
        """Pad `x` with a byte, or crop it where the padding is negative."""
        top, left, bottom, right = pads
        node = AvgPool(name=name, inputs=(x.name,), output=name, kernel=(1, 1), affine=IDENTITY, zp_in=value, pads=pads)
        return self.emit(node, x, (x.height + top + bottom, x.width + left + right))

    def pick(self, x: Tensor, rows: Steps, columns: Steps, name: str) -> Tensor:
        """Select rows and columns of `x`.

        Convolutions crop a few rows and columns, which are often part of the next one. Longer crops are averages of
        single pixels.
        """
        if max(_cuts(rows, x.height), _cuts(columns, x.width)) > _MOST_CROPS:
            pads = (-rows.start, -columns.start, rows.last + 1 - x.height, columns.last + 1 - x.width)
            x = self.pad(x, pads, x.zero_point, f"{name}/cropped")
            rows, columns = (Steps(0, s.last + 1 - s.start, s.step) for s in (rows, columns))
        number = 0
        while (rows, columns) != (Steps(0, x.height), Steps(0, x.width)):
            first, rows = _first_cut(rows, x.height)
            second, columns = _first_cut(columns, x.width)
            x = self._pick_once(x, first, second, f"{name}/cut{number}" if number else name)
            number += 1
        return x

    def _pick_once(self, x: Tensor, rows: Steps, columns: Steps, name: str) -> Tensor:
        kernel = (x.height - (rows.count - 1) * rows.step, x.width - (columns.count - 1) * columns.step)
        weights = np.zeros((x.channels, 1, *kernel), dtype=np.int8)
        weights[..., rows.start, columns.start] = 1
        node = moving_conv(name, x, weights, strides=(rows.step, columns.step), group=x.channels)
        return self.emit(node, x, (rows.count, columns.count))

    def add(self, a: Tensor, b: Tensor, name: str) -> Tensor:
        """Add two images; joins images that are zero where the other one is not."""
        return self.emit(Add(name=name, inputs=(a.name, b.name), output=name, affine=SUM), a, (a.height, a.width))

    def join(self, parts: list[tuple[Tensor, tuple[int, int]]], size: tuple[int, int], name: str) -> Tensor:
        """Join images at their positions (top, left) into one of `size`, which they cover without overlap."""
        whole: Tensor | None = None
        for number, (part, (top, left)) in enumerate(parts):
            pads = (top, left, size[0] - top - part.height, size[1] - left - part.width)
            placed = self.pad(part, pads, 0, f"{name}/placed{number}") if any(pads) else part
            whole = placed if whole is None else self.add(whole, placed, f"{name}/joined{number}")
        if whole is None:
            raise Refusal.INVALID("it joins no tensors", "remove the node")
        return whole


def _cuts(wanted: Steps, size: int) -> int:
    """Convolutions in a row that select pixels of an axis."""
    count = 0
    while wanted != Steps(0, size):
        first, wanted = _first_cut(wanted, size)
        size, count = first.count, count + 1
    return count


def _first_cut(wanted: Steps, size: int) -> tuple[Steps, Steps]:
    """What one convolution crops along an axis, and the selection that remains."""
    if wanted.step > LARGEST_STRIDE:
        raise Refusal.SELECTION(f"it keeps every {wanted.step}th pixel", f"use a step of at most {LARGEST_STRIDE}")
    last = wanted.last
    cut = size - (last - wanted.start + 1)
    if cut >= LARGEST_KERNEL and wanted.count == 1:
        first = wanted.start % LARGEST_STRIDE
        rest = wanted.start // LARGEST_STRIDE
        return Steps(first, size, LARGEST_STRIDE), Steps(rest, rest + 1)
    if cut < LARGEST_KERNEL:
        return wanted, Steps(0, wanted.count)
    start = min(wanted.start, LARGEST_KERNEL - 1)
    stop = size - min(size - 1 - last, LARGEST_KERNEL - 1 - start)
    return Steps(start, stop), Steps(wanted.start - start, wanted.stop - start, wanted.step)
