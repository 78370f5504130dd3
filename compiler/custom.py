"""Registry of custom integer operations.

A custom operation is a node in the user's domain between a QuantizeLinear and a DequantizeLinear (`Q -> MyOp -> DQ`).
Its operands and its result are integers; it interprets their scales itself. Register its semantics in numpy and, if
operations of the accelerator can express it, a lowering to these:

    from intloom.compiler.custom import CustomOp, register

    register(CustomOp(domain="acme", op="Negate", meaning=negate, lower=lower_negate))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from intloom.common.errors import UnsupportedError, UsageError
from intloom.compiler.ir import Custom, Node, Tensor

AttributeValue = int | float | str | tuple[int, ...]
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


def require(node: Custom) -> CustomOp:
    """Look up the operation of a node.

    Raises
    ------
    UnsupportedError
        The operation is not registered.
    """
    found = find(node.domain, node.op)
    if found is None:
        raise UnsupportedError(
            f"node {node.name!r}: {node.domain}::{node.op} is not registered: import the file that registers it"
        )
    return found
