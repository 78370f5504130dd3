"""The base class of integer operations, and the decorator that makes a class an operator of the integer graph.

An operator is one file in `compiler/ir/ops`: fields, shape rule, semantics in numpy and ONNX form. How it becomes
instructions is registered in `compiler/schedule/operators`, because this package knows no scheduler.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeVar, dataclass_transform

from intloom.common.errors import ModelError
from intloom.compiler.ir.tensor import Image, Shape, Tensor
from intloom.hw.spec.arith import CONSTANT_BITS, FACTOR_BITS, MAX_AFFINE_SHIFT, Affine, RoundingMode

if TYPE_CHECKING:
    from intloom.compiler.ir.onnx_writer import Writer

Pair = tuple[int, int]
Pads = tuple[int, int, int, int]
"""Top, left, bottom, right."""


@dataclass(frozen=True)
class Context:
    """What the semantics of an operation may know besides its operands."""

    match: RoundingMode
    tensors: Mapping[str, Tensor]


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

    @abstractmethod
    def evaluate(self, operands: Sequence[Image], context: Context) -> Image:
        """The result. This definition is the golden model: everything else must give the same bytes."""

    @abstractmethod
    def export(self, w: Writer, tensors: Mapping[str, Tensor]) -> None:
        """Write the operation as ONNX nodes that give the same bytes in mode `ort`."""

    def macs(self, tensors: Mapping[str, Tensor]) -> int:
        """True multiply-accumulates, without padding."""
        return 0

    def require(self, holds: bool, rule: str, found: object) -> None:
        """Raise ModelError with the rule unless it holds."""
        require(holds, self.name, rule, found)

    def check_affine(self, affine: Affine) -> None:
        """Check that affine coefficients fit the fields of an instruction."""
        for value, bits in ((affine.m1, FACTOR_BITS), (affine.m2, FACTOR_BITS), (affine.c, CONSTANT_BITS)):
            self.require(abs(value) < 1 << (bits - 1), f"an affine coefficient must fit {bits} bits", value)
        rule = f"the affine shift must be from 0 to {MAX_AFFINE_SHIFT}"
        self.require(0 <= affine.shift <= MAX_AFFINE_SHIFT, rule, affine.shift)


def require(holds: bool, name: str, rule: str, found: object) -> None:
    """Raise ModelError with the rule unless it holds.

    Raises
    ------
    ModelError
        The rule does not hold; the message names node or tensor, rule and value.
    """
    if not holds:
        raise ModelError(f"integer graph, {name!r}: {rule}, but it was {found!r}")


AnyNode = TypeVar("AnyNode", bound=Node)
_OPERATORS: dict[str, type[Node]] = {}


@dataclass_transform(eq_default=False, kw_only_default=True, frozen_default=True)
def operator(kind: type[AnyNode]) -> type[AnyNode]:
    """Make a class an operator: a frozen dataclass with all parts, registered under its name.

    Raises
    ------
    TypeError
        A part is missing: shape rule, semantics or ONNX form. It is a fault of the source, not of an input.
    """
    made = dataclass(frozen=True, eq=False, kw_only=True)(kind)
    if inspect.isabstract(made):
        raise TypeError(f"the operator {made.__name__} must define {', '.join(sorted(made.__abstractmethods__))}")
    if made.__name__ in _OPERATORS:
        raise TypeError(f"the operator {made.__name__} is already registered")
    _OPERATORS[made.__name__] = made
    return made


def operators() -> Mapping[str, type[Node]]:
    """All operators by name."""
    return _OPERATORS
