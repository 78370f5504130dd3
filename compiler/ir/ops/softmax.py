"""Softmax over channels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from intloom.compiler.ir.node import Node, operator
from intloom.compiler.ir.tensor import Shape, Tensor
from intloom.hw.spec.arith import INT8_MAX, INT8_MIN
from intloom.hw.spec.formats import TABLE_BYTES
from intloom.hw.spec.softmax import EXPONENTIAL_BYTES, LARGEST_TOTAL, MOST_LESS, unpack_exponentials


@operator
@dataclass(frozen=True, eq=False, kw_only=True)
class Softmax(Node):
    """Exponential divided by the sum of all exponentials, for each pixel over all channels.

    `y = clamp(floor((e * (256 - less) + floor(s / 2)) / s) + zp_out + 128) - 128`, where e is the exponential of the
    byte's distance from the pixel's largest byte, s their sum, and the clamp is from 0 to 255.
    """

    OPERANDS: ClassVar = 1

    exponentials: bytes
    """256 numbers of 3 bytes: number `255 - d` is the exponential of a byte `d` below the largest."""
    less: int
    zp_out: int

    def result_shape(self, operands: Sequence[Tensor], described: Shape) -> Shape:
        """The operand's shape."""
        count = len(self.exponentials)
        self.require(count == EXPONENTIAL_BYTES * TABLE_BYTES, "it must have 256 exponentials of 3 bytes", count)
        self.require(0 <= self.less <= MOST_LESS, f"less must be from 0 to {MOST_LESS}", self.less)
        self.require(INT8_MIN <= self.zp_out <= INT8_MAX, "zp_out must be an int8", self.zp_out)
        most = max(unpack_exponentials(self.exponentials)) * operands[0].channels
        self.require(most <= LARGEST_TOTAL, f"the sum of exponentials must be at most {LARGEST_TOTAL}", most)
        return operands[0].shape
