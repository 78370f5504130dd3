"""Instruction layouts for the RTL and range checks of instruction fields, derived from the instruction table."""

from __future__ import annotations

from amaranth.hdl import Const, Shape, Value, signed, unsigned
from amaranth.lib import data

from intloom.common.errors import EncodingError
from intloom.hw.spec.isa import BY_KIND, CHECK_BITS, CHECK_LSB, Field, Kind

PAST_END = "past_end"
"""Name of the bits between the last field and the check bits. They are zero in a legal instruction."""
CHECK = "check"
"""Name of the check bits; see `intloom.hw.spec.program_check`."""


def field_shape(field: Field) -> Shape:
    """The Amaranth shape of a field."""
    return signed(field.width) if field.signed else unsigned(field.width)


def used_bits(kind: Kind | str) -> int:
    """Number of bits up to the end of an instruction's last field. All bits from there to the check bits are zero."""
    return sum(f.width for f in BY_KIND[Kind(kind)].fields)


def instruction_layout(kind: Kind | str) -> data.StructLayout:
    """The layout of an instruction: its fields from bit 0 upwards, then `past_end` and `check`."""
    members: dict[str, Shape] = {f.name: field_shape(f) for f in BY_KIND[Kind(kind)].fields}
    used = used_bits(kind)
    if used < CHECK_LSB:
        members[PAST_END] = unsigned(CHECK_LSB - used)
    members[CHECK] = unsigned(CHECK_BITS)
    return data.StructLayout(members)


def _above(value: Value, limit: int) -> Value:
    """Whether an unsigned value exceeds a constant.

    Built bit by bit from bit 0 upwards: where the limit has a 0, a 1 exceeds it; where it has a 1, a 0 does not.
    Yosys 0.70 maps `>` to a carry chain; these gates reduce to one or two LUTs.
    """
    above: Value = Const(0, 1)
    for number in range(len(value)):
        bit = value[number]
        above = bit & above if limit >> number & 1 else bit | above
    return above


def bad_fields(kind: Kind | str, instruction: data.View[data.StructLayout]) -> Value:
    """A bit that is high when a field of the instruction is outside the limits of the instruction table.

    Only fields with fewer legal values than bit patterns take gates. The opcode and the bits past the last field are
    checked by `intloom.hw.control.instruction_checks`.
    """
    bad: Value = Const(0, 1)
    for f in BY_KIND[Kind(kind)].fields[1:]:
        if f.low is None and f.high is None:
            continue
        if f.signed:
            raise EncodingError(f"{kind}.{f.name} must be unsigned to have limits in hardware, not signed")
        value = Value.cast(instruction[f.name])
        # Limits that every bit pattern meets take no gates.
        if f.minimum > 0:
            bad = bad | ~_above(value, f.minimum - 1)
        if f.maximum < (1 << f.width) - 1:
            bad = bad | _above(value, f.maximum)
    return bad
