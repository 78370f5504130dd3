"""The ONNX model that grows, the registry of export functions, and the affine operation that several share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from intloom.common.registry import Registry
from intloom.compiler.importer import Constant, OnnxNode
from intloom.compiler.importer.model import Attribute
from intloom.compiler.ir import IntGraph, Node
from intloom.hw.spec.arith import INT8_MAX, INT8_MIN, Affine

_LIFT = 1 << 16
"""Multiples of 2**shift that make every sum positive, so that division rounds down; far beyond any result."""


@dataclass
class Writer:
    """The ONNX nodes while they grow."""

    nodes: list[OnnxNode] = field(default_factory=list)
    constants: dict[str, Constant] = field(default_factory=dict)

    def constant(self, array: NDArray[np.generic], dtype: str) -> str:
        """Store an array; gives its name."""
        name = f"constant{len(self.constants)}"
        self.constants[name] = Constant(array, dtype)
        return name

    def integer(self, value: int) -> str:
        """Store an int64 scalar."""
        return self.constant(np.array(value, np.int64), "int64")

    def op(self, op: str, inputs: tuple[str, ...], output: str = "", **attributes: Attribute) -> str:
        """Add a node; gives its result."""
        output = output or f"value{len(self.nodes)}"
        self.nodes.append(OnnxNode(f"{op}{len(self.nodes)}", op, inputs, (output,), attributes))
        return output

    def table(self, table: bytes | None, value: str, output: str) -> None:
        """Pass a value through a table, or just name it."""
        if table is None:
            self.op("Identity", (value,), output)
            return
        stored = self.constant(np.frombuffer(table, np.int8), "int8")
        self.op("Gather", (stored, self.op("Cast", (value,), to=6)), output)


Export = Callable[[Writer, IntGraph, Any], None]
EXPORTS: Registry[type[Node], Export] = Registry("an ONNX form")
exports = EXPORTS.register
"""Register the function that writes nodes of these classes."""


def affine(w: Writer, total: str, operation: Affine) -> str:
    """`clamp((total + c) * 2**-shift)`, rounded to even or up."""
    if operation.shift:
        step, half = 1 << operation.shift, 1 << (operation.shift - 1)
        lifted = w.op("Add", (total, w.integer(operation.c + half + _LIFT * step)))
        quotient = w.op("Div", (lifted, w.integer(step)))
        if operation.even:
            exact = w.op("Equal", (w.op("Mul", (quotient, w.integer(step))), lifted))
            odd = w.op("Mod", (quotient, w.integer(2)))
            quotient = w.op("Sub", (quotient, w.op("Mul", (w.op("Cast", (exact,), to=7), odd))))
        total = w.op("Sub", (quotient, w.integer(_LIFT)))
    else:
        total = w.op("Add", (total, w.integer(operation.c)))
    clamped = w.op("Clip", (total, w.integer(INT8_MIN), w.integer(INT8_MAX)))
    return w.op("Cast", (clamped,), to=3)
