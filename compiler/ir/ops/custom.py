"""User-defined operations: the node of the integer graph, and the registry with their semantics."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from intloom.common.errors import UnsupportedError, UsageError
from intloom.compiler.ir.node import Context, Node, operator
from intloom.compiler.ir.onnx_writer import Writer
from intloom.compiler.ir.tensor import Image, Shape, Tensor
from intloom.compiler.refusals import Refusal

AttributeValue = int | float | str | tuple[int, ...]


@operator
class Custom(Node):
    """A user-defined operation; its semantics are in the registry of custom operations."""

    domain: str
    op: str
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)

    def result_shape(self, operands: Sequence[Tensor], described: Shape) -> Shape:
        """The described shape."""
        return described

    def evaluate(self, operands: Sequence[Image], context: Context) -> Image:
        """What the user's own numpy function says.

        Raises
        ------
        UnsupportedError
            The operation is not registered.
        """
        registered = find(self.domain, self.op)
        if registered is None:
            raise UnsupportedError(
                f"node {self.name!r}: {self.domain}::{self.op} is not registered: import the file that registers it",
                Refusal.CUSTOM.number,
            )
        tensors = [context.tensors[name] for name in self.inputs]
        batched = [x[None] for x in operands]
        result = registered.meaning(batched, tensors, context.tensors[self.output], self.attributes)
        return np.ascontiguousarray(result[0])

    def export(self, w: Writer, tensors: Mapping[str, Tensor]) -> None:
        """Refuse: only the user knows an ONNX form."""
        message = f"node {self.name!r}: {self.domain}::{self.op} has no form in ONNX"
        raise UnsupportedError(message, Refusal.CUSTOM.number)


Meaning = Callable[
    [Sequence[NDArray[np.int8]], Sequence[Tensor], Tensor, Mapping[str, AttributeValue]], NDArray[np.int8]
]
"""Semantics: from operands (1, C, H, W), their tensors, the result's tensor and the attributes to the result."""

ShapeRule = Callable[[Sequence[tuple[int, ...]], Mapping[str, AttributeValue]], tuple[int, ...]]
LowerRule = Callable[[Custom, Sequence[Tensor], Tensor], Sequence[Node]]
"""Lowering: from the node, its operands and its result to equivalent nodes of the integer graph."""


def same_shape(shapes: Sequence[tuple[int, ...]], attributes: Mapping[str, AttributeValue]) -> tuple[int, ...]:
    """Shape rule of elementwise operations: the shape of the first operand."""
    return shapes[0]


@dataclass(frozen=True)
class CustomOp:
    """One custom operation. Without `lower`, only the golden model runs it, and compilation fails with an error."""

    domain: str
    op: str
    meaning: Meaning
    shape: ShapeRule = same_shape
    lower: LowerRule | None = None


_OPERATIONS: dict[tuple[str, str], CustomOp] = {}


def register(operation: CustomOp) -> CustomOp:
    """Register an operation.

    Raises
    ------
    UsageError
        The domain is reserved, or the operation is already registered.
    """
    key = (operation.domain, operation.op)
    if not operation.domain or operation.domain in ("ai.onnx", "com.microsoft"):
        raise UsageError(
            f"a custom operation must be in your own domain, not {operation.domain!r}: choose another domain"
        )
    if key in _OPERATIONS:
        raise UsageError(
            f"custom operation {operation.domain}::{operation.op} is already registered: unregister it first"
        )
    _OPERATIONS[key] = operation
    return operation


def unregister(domain: str, op: str) -> None:
    """Remove an operation from the registry."""
    _OPERATIONS.pop((domain, op), None)


def find(domain: str, op: str) -> CustomOp | None:
    """Look up an operation; None if it is not registered."""
    return _OPERATIONS.get((domain, op))
