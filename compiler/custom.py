"""The registry of users' integer operations.

A custom operation is a node of the user's own domain between a QuantizeLinear and a DequantizeLinear (`Q -> MyOp ->
DQ`): it owns its scales, is handed integers, and gives integers. Register its meaning in numpy, and, where it can be
made of the accelerator's own operations, a lowering into those:

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
"""From operands (1, C, H, W), their tensors, the result's tensor and attributes to the result."""

ShapeRule = Callable[[Sequence[tuple[int, ...]], Mapping[str, AttributeValue]], tuple[int, ...]]
LowerRule = Callable[[Custom, Sequence[Tensor], Tensor], Sequence[Node]]
"""From the node, its operands and its result to nodes that together do the same."""


def same_shape(shapes: Sequence[tuple[int, ...]], attributes: Mapping[str, AttributeValue]) -> tuple[int, ...]:
    """The shape rule of elementwise operations."""
    return shapes[0]


@dataclass(frozen=True)
class CustomOp:
    """One operation. Without `lower` only the golden model runs it, and compilation refuses it by name."""

    domain: str
    op: str
    meaning: Meaning
    shape: ShapeRule = same_shape
    lower: LowerRule | None = None


_OPERATIONS: dict[tuple[str, str], CustomOp] = {}


def register(operation: CustomOp) -> CustomOp:
    """Make an operation known; the same name twice is refused."""
    key = (operation.domain, operation.op)
    if not operation.domain or operation.domain in ("ai.onnx", "com.microsoft"):
        raise UsageError(f"a custom operation must be in a domain of its own, not {operation.domain!r}")
    if key in _OPERATIONS:
        raise UsageError(
            f"custom operation {operation.domain}::{operation.op} is already registered: unregister it first"
        )
    _OPERATIONS[key] = operation
    return operation


def unregister(domain: str, op: str) -> None:
    """Forget an operation."""
    _OPERATIONS.pop((domain, op), None)


def find(domain: str, op: str) -> CustomOp | None:
    """The operation of this name, if it is registered."""
    return _OPERATIONS.get((domain, op))


def require(node: Custom) -> CustomOp:
    """The operation behind a node; an unknown one is refused."""
    found = find(node.domain, node.op)
    if found is None:
        raise UnsupportedError(
            f"node {node.name!r}: {node.domain}::{node.op} is not registered: import the file that registers it"
        )
    return found
