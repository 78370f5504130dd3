"""Operations of a window that slides over one tensor."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from intloom.compiler.ir.node import Node, Pads, Pair
from intloom.compiler.ir.tensor import Image, Shape, Tensor


@dataclass(frozen=True, eq=False, kw_only=True)
class Pool(Node):
    """A window that slides over one tensor."""

    OPERANDS: ClassVar = 1

    kernel: Pair
    strides: Pair = (1, 1)
    pads: Pads = (0, 0, 0, 0)
    """Negative, for a window of one pixel: rows and columns that are left out."""

    def result_shape(self, operands: Sequence[Tensor], described: Shape) -> Shape:
        """One pixel per window position."""
        (x,) = operands
        single = (self.kernel, self.strides) == ((1, 1), (1, 1))
        sound = min(*self.kernel, *self.strides) > 0 and (single or min(self.pads) >= 0)
        self.require(sound, "its window must be positive", (self.kernel, self.strides, self.pads))
        top, left, bottom, right = self.pads
        rows = (x.height + top + bottom - self.kernel[0]) // self.strides[0] + 1
        columns = (x.width + left + right - self.kernel[1]) // self.strides[1] + 1
        return (1, x.channels, rows, columns)


def shifted(x: Image, kernel: Pair, strides: Pair, pads: Pads, fill: int) -> Iterator[Image]:
    """For each tap of the kernel its input at every output pixel; the padding is `fill`."""
    x = x[:, max(0, -pads[0]) : x.shape[1] + min(0, pads[2]), max(0, -pads[1]) : x.shape[2] + min(0, pads[3])]
    top, left, bottom, right = (max(0, n) for n in pads)
    padded = np.pad(x, ((0, 0), (top, bottom), (left, right)), constant_values=fill)
    rows = (padded.shape[1] - kernel[0]) // strides[0] + 1
    columns = (padded.shape[2] - kernel[1]) // strides[1] + 1
    for ky in range(kernel[0]):
        for kx in range(kernel[1]):
            part = padded[:, ky : ky + (rows - 1) * strides[0] + 1 : strides[0], :]
            yield part[:, :, kx : kx + (columns - 1) * strides[1] + 1 : strides[1]]
