"""ONNX nodes while operators write them, with the forms that several operators share."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from intloom.hw.spec.arith import INT8_MAX, INT8_MIN, Affine

_LIFT = 1 << 16
"""Multiples of 2**shift that make every sum positive, so that division rounds down; far beyond any result."""

_FIRST_AXES_AS_INPUT = {"ReduceMax": 18, "ReduceSum": 13}


class OnnxForm(NamedTuple):
    """One ONNX node."""

    op: str
    inputs: tuple[str, ...]
    output: str
    attributes: Mapping[str, Any]


@dataclass
class Writer:
    """The nodes and stored arrays so far."""

    prefix: str = ""
    """Beginning of the names that the writer gives."""
    opset: int = 17
    nodes: list[OnnxForm] = field(default_factory=list)
    constants: dict[str, NDArray[Any]] = field(default_factory=dict)

    def constant(self, values: ArrayLike, dtype: DTypeLike) -> str:
        """Store an array; gives its name."""
        name = f"{self.prefix}constant{len(self.constants)}"
        self.constants[name] = np.asarray(values, dtype)
        return name

    def integer(self, value: int) -> str:
        """Store an int64 scalar."""
        return self.constant(value, np.int64)

    def op(self, op: str, inputs: tuple[str, ...], output: str = "", **attributes: Any) -> str:
        """Add a node; gives its result."""
        output = output or f"{self.prefix}value{len(self.nodes)}"
        self.nodes.append(OnnxForm(op, inputs, output, attributes))
        return output

    def math(self, op: str, a: str, b: str | int) -> str:
        """Add an operator of two int64 values."""
        return self.op(op, (a, b if isinstance(b, str) else self.integer(b)))

    def reduced(self, op: str, value: str, axes: tuple[int, ...], keepdims: int = 1) -> str:
        """Reduce over some axes, which are an input from some opset on."""
        if self.opset >= _FIRST_AXES_AS_INPUT[op]:
            return self.op(op, (value, self.constant(axes, np.int64)), keepdims=keepdims)
        return self.op(op, (value,), axes=axes, keepdims=keepdims)

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
            lifted = self.math("Add", total, operation.c + half + _LIFT * step)
            quotient = self.math("Div", lifted, step)
            if operation.even:
                exact = self.op("Equal", (self.math("Mul", quotient, step), lifted))
                odd = self.math("Mod", quotient, 2)
                quotient = self.math("Sub", quotient, self.math("Mul", self.widened(exact), odd))
            total = self.math("Sub", quotient, _LIFT)
        else:
            total = self.math("Add", total, operation.c)
        clamped = self.op("Clip", (total, self.integer(INT8_MIN), self.integer(INT8_MAX)))
        return self.op("Cast", (clamped,), to=3)
