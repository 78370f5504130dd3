"""What an instruction is made of: widths, units, fields, and the row type of the instruction table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from functools import cached_property
from types import MappingProxyType

from intloom.common.errors import EncodingError

ISA_VERSION = 1
INSTRUCTION_BITS = 512
INSTRUCTION_BYTES = INSTRUCTION_BITS // 8
COUNT_BITS = 20
SCRATCH_BITS = 20
DRAM_BITS = 32
COORDINATE_BITS = 14
"""Bits of a height or width; first coordinates have a sign and one more bit, since padding starts before zero."""


class Unit(IntEnum):
    """The four units, each with a queue and a count of finished instructions, and the control unit."""

    LOAD = 0
    MAC = 1
    VEC = 2
    STORE = 3
    CONTROL = 4


QUEUED_UNITS = (Unit.LOAD, Unit.MAC, Unit.VEC, Unit.STORE)


class Target(IntEnum):
    """Memory that a load writes."""

    SCRATCH = 0
    WEIGHT = 1


class TableUse(IntEnum):
    """What a MAC instruction does with the 256-byte table after requantisation."""

    NONE = 0
    KEEP = 1
    LOAD = 2


@dataclass(frozen=True)
class Field:
    """One field: its place follows from the order in the table."""

    name: str
    width: int
    doc: str
    signed: bool = False
    low: int | None = None
    high: int | None = None
    unit: str = ""

    @property
    def minimum(self) -> int:
        """Smallest legal value."""
        return self.low if self.low is not None else -(1 << (self.width - 1)) if self.signed else 0

    @property
    def maximum(self) -> int:
        """Largest legal value."""
        return self.high if self.high is not None else (1 << (self.width - self.signed)) - 1

    @property
    def default(self) -> int:
        """The value of a field that is left out: zero, or the nearest legal value to it."""
        return min(max(0, self.minimum), self.maximum)


HEADER = (
    Field("opcode", 8, "Which instruction this is."),
    *(
        Field(
            f"wait_{u.name.lower()}",
            COUNT_BITS,
            f"Start only when the {u.name} unit has finished this many instructions.",
        )
        for u in QUEUED_UNITS
    ),
)


class Kind(StrEnum):
    """Names of all instructions, for code that builds them."""

    BEGIN = "BEGIN"
    END = "END"
    LOAD = "LOAD"
    STORE = "STORE"
    CONV = "CONV"
    VTABLE = "VTABLE"
    VCOPY = "VCOPY"
    VADD = "VADD"
    VMUL = "VMUL"
    VMAX = "VMAX"
    VAVG = "VAVG"


@dataclass(frozen=True)
class InstructionSpec:
    """One row of the table: name, opcode, the unit that runs it, its own fields after the header."""

    kind: Kind
    opcode: int
    unit: Unit
    doc: str
    body: tuple[Field, ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        """Header and body, from bit 0 upwards."""
        return HEADER + self.body

    @cached_property
    def offsets(self) -> Mapping[str, int]:
        """Bit number of each field's lowest bit."""
        places: dict[str, int] = {}
        at = 0
        for f in self.fields:
            places[f.name] = at
            at += f.width
        if at > INSTRUCTION_BITS:
            raise EncodingError(f"{self.kind} must fit {INSTRUCTION_BITS} bits, not {at}")
        return MappingProxyType(places)

    def field(self, name: str) -> Field:
        """The field called `name`."""
        for f in self.fields:
            if f.name == name:
                return f
        raise EncodingError(f"{self.kind} has no field {name!r}: it has {', '.join(f.name for f in self.fields)}")
