"""Maximum and average pooling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from intloom.compiler.ir.node import Node, Pads, Pair, operator
from intloom.compiler.ir.tensor import Shape, Tensor
from intloom.hw.spec.arith import Affine


@dataclass(frozen=True, eq=False, kw_only=True)
class _Pool(Node):
    """A window that slides over one tensor."""

    OPERANDS: ClassVar = 1

    kernel: Pair
    strides: Pair = (1, 1)
    pads: Pads = (0, 0, 0, 0)

    def result_shape(self, operands: Sequence[Tensor], described: Shape) -> Shape:
        """One pixel per window position."""
        (x,) = operands
        sound = min(*self.kernel, *self.strides) > 0 and min(self.pads) >= 0
        self.require(sound, "its window must be positive", (self.kernel, self.strides, self.pads))
        top, left, bottom, right = self.pads
        rows = (x.height + top + bottom - self.kernel[0]) // self.strides[0] + 1
        columns = (x.width + left + right - self.kernel[1]) // self.strides[1] + 1
        return (1, x.channels, rows, columns)


@operator
@dataclass(frozen=True, eq=False, kw_only=True)
class MaxPool(_Pool):
    """Largest value of each window; padding does not count."""


@operator
@dataclass(frozen=True, eq=False, kw_only=True)
class AvgPool(_Pool):
    """`affine(sum of the window, 0)`, then the table; padding counts as `zp_in`."""

    affine: Affine
    zp_in: int
    table: bytes | None = None

    def result_shape(self, operands: Sequence[Tensor], described: Shape) -> Shape:
        """One pixel per window position."""
        self.check_affine(self.affine)
        return super().result_shape(operands, described)
