"""Softmax over channels."""

from collections.abc import Mapping, Sequence
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
        most = max(unpack_exponentials(self.exponentials)) * operands[0].channels
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
        """Exponentials by Gather, and a division in int64."""
        table = w.constant(unpack_exponentials(self.exponentials), np.int64)
        value = w.widened(self.inputs[0])
        index = w.op("Sub", (w.op("Add", (value, w.integer(255))), w.op("ReduceMax", (value,), axes=(1,))))
        exponentials = w.op("Gather", (table, index))
        # A sum of 0 divides 0: the quotient is then more than any byte.
        total = w.op("ReduceSum", (exponentials, w.constant([1], np.int64)))
        none = w.widened(w.op("Equal", (total, w.integer(0))))
        half = w.op("Div", (total, w.integer(2)))
        scaled = w.op("Add", (w.op("Mul", (exponentials, w.integer(256 - self.less))), half))
        lifted = w.op("Add", (scaled, w.op("Mul", (none, w.integer((1 << QUOTIENT_BITS) - 1)))))
        quotient = w.op("Div", (lifted, w.op("Add", (total, none))))
        moved = w.op("Add", (quotient, w.integer(self.zp_out)))
        w.op("Cast", (w.op("Min", (moved, w.integer(INT8_MAX))),), self.output, to=3)
