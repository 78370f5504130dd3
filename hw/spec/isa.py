"""The instruction table. Encoder, decoder, assembler, RTL layout, C header and manual all derive from it.

Every instruction is 512 bits, little-endian in memory. Its header has the opcode and one wait count for each of the
four units. Each unit executes its queue in order. An instruction with `wait_mac=7` issues when the MAC unit has
finished seven instructions of the program. A wait refers to an instruction and not to a token: it may be repeated, and
it may be left out where another wait implies it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Protocol

from intloom.common.errors import EncodingError
from intloom.hw.spec.fields import (
    CHECK_BITS,
    CHECK_LSB,
    COORDINATE_BITS,
    COUNT_BITS,
    DRAM_BITS,
    HEADER,
    INSTRUCTION_BITS,
    INSTRUCTION_BYTES,
    ISA_VERSION,
    QUEUED_UNITS,
    SCRATCH_BITS,
    WEIGHT_ADDRESS_BITS,
    ConvMode,
    Field,
    LoadTarget,
    TableUse,
    Unit,
)
from intloom.hw.spec.instructions import BY_KIND, BY_OPCODE, INSTRUCTIONS, AccessPattern, InstructionSpec, Kind

__all__ = [
    "BY_KIND",
    "BY_OPCODE",
    "CHECK_BITS",
    "CHECK_LSB",
    "COORDINATE_BITS",
    "COUNT_BITS",
    "DRAM_BITS",
    "HEADER",
    "INSTRUCTIONS",
    "INSTRUCTION_BITS",
    "INSTRUCTION_BYTES",
    "ISA_VERSION",
    "QUEUED_UNITS",
    "SCRATCH_BITS",
    "WEIGHT_ADDRESS_BITS",
    "AccessPattern",
    "ConvMode",
    "Field",
    "Fields",
    "Instruction",
    "InstructionSpec",
    "Kind",
    "LoadTarget",
    "TableUse",
    "Unit",
    "assemble",
    "decode",
    "disassemble",
    "encode",
    "make",
]


class Fields(Protocol):
    """An instruction, or the values of its fields, which are faster to read."""

    def __getitem__(self, name: str, /) -> int: ...


@dataclass(frozen=True)
class Instruction:
    """One instruction; all fields are in range. Created by `make`; fields are read with `[]`."""

    kind: Kind
    values: MappingProxyType[str, int]

    @property
    def spec(self) -> InstructionSpec:
        """Its row of the instruction table."""
        return BY_KIND[self.kind]

    @property
    def unit(self) -> Unit:
        """The unit that executes it."""
        return self.spec.unit

    def __getitem__(self, name: str) -> int:
        return self.values[name]

    def with_fields(self, **changes: int) -> Instruction:
        """A copy with some fields changed, checked again."""
        values = {k: v for k, v in self.values.items() if k != "opcode"}
        return make(self.kind, **{**values, **changes})

    def with_waits(self, waits: Mapping[str, int]) -> Instruction:
        """A copy with other wait fields; only these are checked."""
        limits = _limits(self.kind)
        for name, value in waits.items():
            f, low, high = limits.get(name) or (self.spec.field(name), 0, -1)
            if not (type(value) is int and low <= value <= high):
                _check(self.spec, f, value)
        return Instruction(self.kind, MappingProxyType(self.values | waits))


def _check(spec: InstructionSpec, field: Field, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise EncodingError(f"{spec.kind}.{field.name} must be an integer, not {value!r}")
    if not field.minimum <= value <= field.maximum:
        raise EncodingError(f"{spec.kind}.{field.name} must be from {field.minimum} to {field.maximum}, not {value}")
    return value


def make(kind: Kind | str, **values: int) -> Instruction:
    """An instruction; omitted fields have their defaults. An unknown field or a value out of range is an error."""
    try:
        spec = BY_KIND[Kind(kind)]
    except ValueError:
        raise EncodingError(f"instruction must be one of {', '.join(Kind)}, not {kind!r}") from None
    limits = _limits(spec.kind)
    for name, value in values.items():
        # Fast path for a legal value; `_check` raises the error for any other.
        limit = limits.get(name)
        if limit is None or type(value) is not int or not limit[1] <= value <= limit[2]:
            if name == "opcode":
                raise EncodingError(f"{spec.kind}.opcode follows from the instruction's name and cannot be set")
            _check(spec, limit[0] if limit else spec.field(name), value)
    return Instruction(spec.kind, MappingProxyType(_defaults(spec.kind) | values))


@cache
def _defaults(kind: Kind) -> dict[str, int]:
    """The values of all fields of an instruction whose fields are omitted."""
    spec = BY_KIND[kind]
    return {"opcode": spec.opcode, **{f.name: f.default for f in spec.fields[1:]}}


@cache
def _limits(kind: Kind) -> dict[str, tuple[Field, int, int]]:
    """Every field of an instruction except the opcode, with its minimum and maximum."""
    return {f.name: (f, f.minimum, f.maximum) for f in BY_KIND[kind].fields[1:]}


@cache
def _layout(kind: Kind) -> tuple[itemgetter[Any], tuple[tuple[int, int], ...]]:
    """What reads the values of all fields of an instruction, and for each field its mask and first bit."""
    spec = BY_KIND[kind]
    layout = tuple(((1 << f.width) - 1, spec.offsets[f.name]) for f in spec.fields)
    return itemgetter(*(f.name for f in spec.fields)), layout


def encode(instruction: Instruction) -> bytes:
    """The 64 bytes of an instruction, with zeros for the check bits: those depend on all earlier instructions."""
    read, layout = _layout(instruction.kind)
    word = 0
    for value, (mask, lsb) in zip(read(instruction.values), layout, strict=True):
        word |= (value & mask) << lsb
    return word.to_bytes(INSTRUCTION_BYTES, "little")


def decode(data: bytes) -> Instruction:
    """The instruction in 64 bytes; its check bits are ignored.

    Raises
    ------
    EncodingError
        The opcode is unknown, a field is out of range, or a bit between the last field and the check bits is set.
    """
    if len(data) != INSTRUCTION_BYTES:
        raise EncodingError(f"an instruction must be {INSTRUCTION_BYTES} bytes, not {len(data)}")
    word = int.from_bytes(data, "little") & (1 << CHECK_LSB) - 1
    spec = BY_OPCODE.get(word & 0xFF)
    if spec is None:
        raise EncodingError(
            f"opcode must be one of {', '.join(f'{o:#04x}' for o in BY_OPCODE)}, not {word & 0xFF:#04x}"
        )
    values: dict[str, int] = {}
    for f in spec.fields:
        raw = word >> spec.offsets[f.name] & ((1 << f.width) - 1)
        values[f.name] = raw - (1 << f.width) if f.signed and raw >> (f.width - 1) else raw
    used = sum(f.width for f in spec.fields)
    if word >> used:
        raise EncodingError(f"{spec.kind} must have zeros above bit {used - 1}")
    values.pop("opcode")
    return make(spec.kind, **values)


def disassemble(instruction: Instruction) -> str:
    """One line of text: the name, then every field that is not at its default."""
    shown = [f"{f.name}={instruction[f.name]}" for f in instruction.spec.fields[1:] if instruction[f.name] != f.default]
    return " ".join([instruction.kind, *shown])


def assemble(line: str) -> Instruction:
    """The instruction in one line of text; numbers may be hexadecimal (0x…), `#` starts a comment."""
    words = line.split("#", 1)[0].split()
    if not words:
        raise EncodingError("an assembly line must hold an instruction, not be empty")
    values: dict[str, int] = {}
    for word in words[1:]:
        name, equals, text = word.partition("=")
        if not equals:
            raise EncodingError(f"{words[0]}: a field must be written name=value, not {word!r}")
        if name in values:
            raise EncodingError(f"{words[0]}.{name} is given twice")
        try:
            values[name] = int(text, 0)
        except ValueError:
            raise EncodingError(f"{words[0]}.{name} must be a number, not {text!r}") from None
    return make(words[0], **values)
