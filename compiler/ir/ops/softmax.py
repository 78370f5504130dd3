"""Softmax over channels."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import ClassVar

import numpy as np

from intloom.compiler.ir.node import Context, Node, operator
from intloom.compiler.ir.onnx_writer import Writer
from intloom.compiler.ir.tensor import Image, Shape, Tensor
from intloom.hw.spec.arith import INT8_MAX, INT8_MIN
from intloom.hw.spec.formats import TABLE_BYTES
from intloom.hw.spec.softmax import EXPONENTIAL_BYTES, LARGEST_TOTAL, MOST_LESS, QUOTIENT_BITS, unpack_exponentials


@operator
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
        most = _largest(self.exponentials) * operands[0].channels
        self.require(most <= LARGEST_TOTAL, f"the sum of exponentials must be at most {LARGEST_TOTAL}", most)
        return operands[0].shape

    def evaluate(self, operands: Sequence[Image], context: Context) -> Image:
        """Exponential by exponential, over the sum of a pixel's."""
        x = operands[0].astype(np.int64)
        exponentials = np.array(unpack_exponentials(self.exponentials))[255 + x - x.max(axis=0)]
        total = exponentials.sum(axis=0)
        quotient = (exponentials * (256 - self.less) + (total >> 1)) // np.maximum(total, 1)
        quotient = np.where(total == 0, (1 << QUOTIENT_BITS) - 1, quotient)
        result: Image = np.minimum(quotient + self.zp_out, INT8_MAX).astype(np.int8)
        return result

    def export(self, w: Writer, tensors: Mapping[str, Tensor]) -> None:
        """Quotients in int64."""
        table = unpack_exponentials(self.exponentials)
        quotient = quotients(w, w.widened(self.inputs[0]), table, 256 - self.less, axis=1)
        w.op("Cast", (w.math("Min", w.math("Add", quotient, self.zp_out), INT8_MAX),), self.output, to=3)


@cache
def _largest(exponentials: bytes) -> int:
    """The largest exponential. Most Softmaxes of a graph have the same ones, and each change is verified."""
    return max(unpack_exponentials(exponentials))


def quotients(w: Writer, value: str, exponentials: Sequence[int], full: int, axis: int) -> str:
    """Write the quotients of int64 values: by Gather and a division."""
    index = w.math("Add", w.math("Sub", value, w.reduced("ReduceMax", value, (axis,))), TABLE_BYTES - 1)
    terms = w.op("Gather", (w.constant(exponentials, np.int64), index))
    total = w.reduced("ReduceSum", terms, (axis,))
    # A sum of 0 divides 0: the quotient is then more than any byte.
    none = w.widened(w.math("Equal", total, 0))
    rounded = w.math("Add", w.math("Mul", terms, full), w.math("Div", total, 2))
    lifted = w.math("Add", rounded, w.math("Mul", none, (1 << QUOTIENT_BITS) - 1))
    return w.math("Div", lifted, w.math("Add", total, none))
