"""Elementwise operations of two tensors, each one instruction of the vector unit."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.ir.arithmetic import through
from intloom.compiler.ir.node import Context, Node
from intloom.compiler.ir.onnx_writer import Writer
from intloom.compiler.ir.tensor import Image, Shape, Tensor
from intloom.hw.spec.isa import Kind


@dataclass(frozen=True, eq=False, kw_only=True)
class Elementwise(Node):
    """`table[combine(a, b)]`; a pixel is broadcast over the other operand."""

    OPERANDS: ClassVar = 2

    table: bytes | None = None

    @abstractmethod
    def combine(self, a: NDArray[np.int64], b: NDArray[np.int64]) -> Image:
        """The result bytes before the table."""

    @abstractmethod
    def combine_onnx(self, w: Writer, a: str, b: str) -> str:
        """The same as ONNX nodes: from int64 operands to int8."""

    @abstractmethod
    def instruction(self) -> tuple[Kind, Mapping[str, int]]:
        """The instruction that computes it, and those of its fields that do not depend on the tile."""

    def result_shape(self, operands: Sequence[Tensor], described: Shape) -> Shape:
        """The operands' shape, or that of the operand over which the other one is broadcast."""
        a, b = (x.shape for x in operands)
        pixel = (1, a[1], 1, 1)
        fits = a == b or (a[1] == b[1] and pixel in (a, b))
        self.require(fits, "operands must have one shape, or one must be a pixel", [a, b])
        return b if a == pixel else a

    def evaluate(self, operands: Sequence[Image], context: Context) -> Image:
        """Combine every pair of values."""
        a, b = np.broadcast_arrays(*operands)
        return through(self.table, self.combine(a.astype(np.int64), b.astype(np.int64)))

    def export(self, w: Writer, tensors: Mapping[str, Tensor]) -> None:
        """Combine in int64."""
        a, b = (w.widened(value) for value in self.inputs)
        w.table(self.table, self.combine_onnx(w, a, b), self.output)
