"""What an instruction is made of: widths, units and fields."""

from dataclasses import dataclass
from enum import IntEnum

ISA_VERSION = 3
INSTRUCTION_BITS = 512
INSTRUCTION_BYTES = INSTRUCTION_BITS // 8
CHECK_BITS = 6
"""The highest bits of every instruction; see `program_check`."""
CHECK_LSB = INSTRUCTION_BITS - CHECK_BITS
COUNT_BITS = 20
SCRATCH_BITS = 20
WEIGHT_ADDRESS_BITS = 18
"""Bits of a weight memory address: 1,024 KiB in words of four bytes."""
DRAM_BITS = 32
COORDINATE_BITS = 14
"""Bits of a height or width. First coordinates have one more bit for the sign: padding has negative coordinates."""


class Unit(IntEnum):
    """The four units, each with a queue and a count of finished instructions, and the control unit."""

    # Enum hashes names in Python, and dictionaries of units are read for every instruction.
    __hash__ = int.__hash__

    LOAD = 0
    MAC = 1
    VEC = 2
    STORE = 3
    CONTROL = 4


QUEUED_UNITS = (Unit.LOAD, Unit.MAC, Unit.VEC, Unit.STORE)


class LoadTarget(IntEnum):
    """The memory that a LOAD writes."""

    SCRATCH = 0
    WEIGHT = 1


class TableUse(IntEnum):
    """Use of the 256-byte lookup table after requantization."""

    NONE = 0
    KEEP = 1
    LOAD = 2


class ConvMode(IntEnum):
    """What the rows of the array stand for in a CONV."""

    BLOCKS = 0
    """Input channels of one pixel."""
    PACKED = 1
    """Pixels of four channels."""


@dataclass(frozen=True)
class Field:
    """One field; its bit position follows from the order in the table."""

    name: str
    width: int
    doc: str
    signed: bool = False
    low: int | None = None
    high: int | None = None
    unit: str = ""
    requires: str = ""
    """The hardware parameter that enables values other than 0; empty: always available."""

    @property
    def meaning(self) -> str:
        """The documentation, with the hardware parameter that it needs."""
        return f"{self.doc} The hardware parameter {self.requires} enables it." if self.requires else self.doc

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
        """The value of an omitted field: zero, or the legal value nearest to zero."""
        return min(max(0, self.minimum), self.maximum)


HEADER = (
    Field("opcode", 8, "Opcode."),
    *(
        Field(
            f"wait_{u.name.lower()}",
            COUNT_BITS,
            f"Issue only when the {u.name} unit has finished this many instructions.",
        )
        for u in QUEUED_UNITS
    ),
)
