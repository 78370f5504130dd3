"""The base class of integer operations, and the registry that the operations enter by decorator."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from intloom.common.errors import ModelError
from intloom.compiler.ir.tensor import Shape, Tensor
from intloom.hw.spec.arith import Affine

Pair = tuple[int, int]
Pads = tuple[int, int, int, int]
"""Top, left, bottom, right."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Node(ABC):
    """One operation: a unique name, the tensors that it reads, and the one that it writes.

    Values are int8. Tables are 256 bytes indexed by the value's own byte (`value & 0xFF`) and hold result bytes. An
    optional field `table` maps every result byte after rounding and clamping.
    """

    OPERANDS: ClassVar[int | None] = None
    """Number of operands; None: any."""

    name: str
    inputs: tuple[str, ...]
    output: str
    origin: tuple[str, ...] = ()
    """Names of the ONNX nodes that it stands for."""

    @abstractmethod
    def result_shape(self, operands: Sequence[Tensor], described: Shape) -> Shape:
        """Check the operation's constants and give the shape of its result.

        `described` is the shape that the graph gives the result; only operations with free semantics return it.
        """

    def macs(self, tensors: Mapping[str, Tensor]) -> int:
        """True multiply-accumulates, without padding."""
        return 0

    def require(self, holds: bool, rule: str, found: object) -> None:
        """Raise ModelError with the rule unless it holds."""
        require(holds, self.name, rule, found)

    def pair_shape(self, operands: Sequence[Tensor]) -> Shape:
        """The shape of an elementwise result of two operands; a pixel is broadcast over the other operand."""
        a, b = (x.shape for x in operands)
        pixel = (1, a[1], 1, 1)
        fits = a == b or (a[1] == b[1] and pixel in (a, b))
        self.require(fits, "operands must have one shape, or one must be a pixel", [a, b])
        return b if a == pixel else a

    def check_affine(self, affine: Affine) -> None:
        """Check that affine coefficients fit the fields of an instruction."""
        # The instruction fields of m1 and m2 have 32 bits, that of c has 48, all signed.
        for value, bits in ((affine.m1, 32), (affine.m2, 32), (affine.c, 48)):
            self.require(abs(value) < 1 << (bits - 1), f"an affine coefficient must fit {bits} bits", value)
        self.require(0 <= affine.shift <= 47, "the affine shift must be from 0 to 47", affine.shift)


def require(holds: bool, name: str, rule: str, found: object) -> None:
    """Raise ModelError with the rule unless it holds.

    Raises
    ------
    ModelError
        The rule does not hold; the message names node or tensor, rule and value.
    """
    if not holds:
        raise ModelError(f"integer graph, {name!r}: {rule}, but it was {found!r}")


AnyNode = TypeVar("AnyNode", bound=type[Node])
_OPERATORS: dict[str, type[Node]] = {}


def operator(kind: AnyNode) -> AnyNode:
    """Register a node class under its name."""
    if kind.__name__ in _OPERATORS:
        raise ValueError(f"the integer operation {kind.__name__} is already registered")
    _OPERATORS[kind.__name__] = kind
    return kind


def operators() -> Mapping[str, type[Node]]:
    """All registered node classes by name."""
    return _OPERATORS
