"""The ONNX form of a graph while operators write their nodes, with the forms that several operators share."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from intloom.hw.spec.arith import INT8_MAX, INT8_MIN, Affine

_LIFT = 1 << 16
"""Multiples of 2**shift that make every sum positive, so that division rounds down; far beyond any result."""


class OnnxForm(NamedTuple):
    """One ONNX node."""

    op: str
    inputs: tuple[str, ...]
    output: str
    attributes: Mapping[str, Any]


@dataclass
class Writer:
    """The nodes and stored arrays so far."""

    nodes: list[OnnxForm] = field(default_factory=list)
    constants: dict[str, NDArray[Any]] = field(default_factory=dict)

    def constant(self, values: ArrayLike, dtype: DTypeLike) -> str:
        """Store an array; gives its name."""
        name = f"constant{len(self.constants)}"
        self.constants[name] = np.asarray(values, dtype)
        return name

    def integer(self, value: int) -> str:
        """Store an int64 scalar."""
        return self.constant(value, np.int64)

    def op(self, op: str, inputs: tuple[str, ...], output: str = "", **attributes: Any) -> str:
        """Add a node; gives its result."""
        output = output or f"value{len(self.nodes)}"
        self.nodes.append(OnnxForm(op, inputs, output, attributes))
        return output

    def widened(self, value: str) -> str:
        """A value in int64: affine products exceed 32 bits."""
        return self.op("Cast", (value,), to=7)

    def reshaped(self, value: str, shape: tuple[int, ...]) -> str:
        """A value in another shape."""
        return self.op("Reshape", (value, self.constant(shape, np.int64)))

    def table(self, table: bytes | None, value: str, output: str) -> None:
        """Pass a value through a table, or just name it.

        Negative indices of Gather count from the end, just as `value & 0xFF` does.
        """
        if table is None:
            self.op("Identity", (value,), output)
            return
        stored = self.constant(np.frombuffer(table, np.int8), np.int8)
        self.op("Gather", (stored, self.op("Cast", (value,), to=6)), output)

    def affine(self, total: str, operation: Affine) -> str:
        """`clamp((total + c) * 2**-shift)`, rounded to even or up."""
        if operation.shift:
            step, half = 1 << operation.shift, 1 << (operation.shift - 1)
            lifted = self.op("Add", (total, self.integer(operation.c + half + _LIFT * step)))
            quotient = self.op("Div", (lifted, self.integer(step)))
            if operation.even:
                exact = self.op("Equal", (self.op("Mul", (quotient, self.integer(step))), lifted))
                odd = self.op("Mod", (quotient, self.integer(2)))
                quotient = self.op("Sub", (quotient, self.op("Mul", (self.widened(exact), odd))))
            total = self.op("Sub", (quotient, self.integer(_LIFT)))
        else:
            total = self.op("Add", (total, self.integer(operation.c)))
        clamped = self.op("Clip", (total, self.integer(INT8_MIN), self.integer(INT8_MAX)))
        return self.op("Cast", (clamped,), to=3)
