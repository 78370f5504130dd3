"""The registry of golden operations, filled by decorator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from intloom.common.errors import UnsupportedError
from intloom.common.registry import Registry
from intloom.compiler.ir import Node, Tensor
from intloom.hw.spec.arith import RoundingMode

Image = NDArray[np.int8]
"""(channels, height, width): the batch is always one."""


@dataclass(frozen=True)
class Context:
    """What an operation may know besides its operands."""

    match: RoundingMode
    tensors: Mapping[str, Tensor]


Operation = Callable[[Any, Sequence[Image], Context], Image]
OPERATIONS: Registry[type[Node], Operation] = Registry("a golden operation")
golden = OPERATIONS.register
"""Register the semantics of one node class."""


def operation(node: Node) -> Operation:
    """The meaning of a node; a kind without one is refused with the list of known kinds."""
    try:
        return OPERATIONS[type(node)]
    except KeyError:
        known = ", ".join(sorted(k.__name__ for k in OPERATIONS))
        raise UnsupportedError(
            f"node {node.name!r}: {type(node).__name__} has no golden operation; known are {known}"
        ) from None


def through(table: bytes | None, values: Image) -> Image:
    """Pass every byte through a table."""
    return values if table is None else np.frombuffer(table, dtype=np.int8)[values.view(np.uint8)]
