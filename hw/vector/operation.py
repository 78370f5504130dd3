"""A decoded vector instruction: the fields of all kinds in one layout, with defaults for absent ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Module, Shape, Value, signed, unsigned
from amaranth.lib import data

from intloom.hw.decode import instruction_layout
from intloom.hw.spec.arith import INT8_MIN
from intloom.hw.spec.isa import BY_KIND, INSTRUCTION_BITS, INSTRUCTIONS, AccessPattern, Instruction, Kind, Unit
from intloom.hw.spec.norm import LARGEST_COUNT
from intloom.hw.spec.params import HardwareParams
from intloom.hw.vector.operand_stage import LANE_FUNCTIONS

VECTOR_KINDS = tuple(spec.kind for spec in INSTRUCTIONS if spec.unit is Unit.VEC)

_DEFAULTS: Mapping[str, int | None] = {
    "a_base": 0,
    "a_plane": None,
    "a_row": 0,
    "a_x": 1,
    "a_row_off": None,
    "a_ring": None,
    "b_base": 0,
    "b_plane": None,
    "b_row": None,
    "out_h": 1,
    "out_w": 1,
    "out_base": 0,
    "out_plane": 0,
    "out_row": 0,
    "out_x": 1,
    "blocks": 1,
    "table": 0,
    "up_h": 1,
    "up_w": 1,
    "rotate": 0,
    "first_byte": 0,
    "byte_count": 32,
    # Identity constants of the affine operation: copies and maxima pass through unchanged.
    "m1": 1,
    "m2": 0,
    "c": 0,
    "shift": 0,
    "even": 0,
    "zp_a": 0,
    "zp_b": 0,
    "in_h": 1,
    "in_w": 1,
    "iy0": 0,
    "ix0": 0,
    "kernel_h": 1,
    "kernel_w": 1,
    "stride_h": 1,
    "stride_w": 1,
    "part": None,
    "last_bytes": 1,
    "less": None,
    "center": None,
    "epsilon": None,
    "zp_out": 0,
}
"""Instruction fields and their values for kinds that lack them; None where those kinds do not read the field.

A field with None is in one position of all instructions that have it, and its bits pass without a multiplexer.
"""

FLAGS = (
    "load_table",
    "exponentials",
    "softmax",
    "norm",
    "channels",
    "uses_b",
    *LANE_FUNCTIONS,
    "bounded",
    "depthwise",
)
"""What an operation does beyond copying: load a table, which is one of exponentials, compute a Softmax or a
normalization, both over channels, read B, a lane function, apply the input's bounds, compute a depthwise
convolution."""


def _shape(name: str) -> Shape:
    for kind in VECTOR_KINDS:
        for field in BY_KIND[kind].fields:
            if field.name == name:
                return signed(field.width) if field.signed else unsigned(field.width)
    raise KeyError(name)


OPERATION_LAYOUT = data.StructLayout(
    {**{name: _shape(name) for name in _DEFAULTS}, **{flag: unsigned(1) for flag in FLAGS}, "fill": signed(8)}
)
"""All fields of all vector instructions, the flags, and the fill byte for input outside the tensor."""


_OVER_CHANNELS = (AccessPattern.CHANNELS, AccessPattern.NORM)


def _flags(kind: Kind) -> dict[str, int]:
    pattern = BY_KIND[kind].pattern
    return {
        "load_table": pattern is AccessPattern.TABLE,
        "exponentials": kind is Kind.VEXP,
        "softmax": kind is Kind.VSOFTMAX,
        "norm": kind is Kind.VNORM,
        "channels": pattern in _OVER_CHANNELS,
        "uses_b": pattern is AccessPattern.ELEMENTWISE,
        **{flag: function is kind for flag, function in LANE_FUNCTIONS.items()},
        "bounded": pattern is AccessPattern.WINDOW,
        "depthwise": pattern is AccessPattern.DEPTHWISE,
    }


def operation_of(instruction: Instruction, params: HardwareParams) -> dict[str, int]:
    """The operation that `decode_operation` makes of a legal instruction, without the fields that it does not read."""
    fill = {"fill": instruction.values.get("zp_in", INT8_MIN)}
    fields = {name: instruction[name] for name in _DEFAULTS if name in instruction.values}
    if instruction.spec.pattern is AccessPattern.TABLE:
        fields["out_w"] = params.table_words
    if instruction.spec.pattern in _OVER_CHANNELS:
        fields["kernel_h"] = instruction["blocks"]
    return {**_known_defaults(), **fields, **_flags(instruction.kind), **fill}


def _known_defaults() -> dict[str, int]:
    return {name: value for name, value in _DEFAULTS.items() if value is not None}


def kinds_of(params: HardwareParams) -> tuple[Kind, ...]:
    """The vector instructions that hardware with these parameters implements."""
    specs = (BY_KIND[kind] for kind in VECTOR_KINDS)
    return tuple(s.kind for s in specs if not s.requires or getattr(params, s.requires))


def _illegal(kind: Kind, fields: Mapping[str, Any] | data.View[data.StructLayout], params: HardwareParams) -> Any:
    """Whether the fields contradict each other, or the hardware."""
    if kind is Kind.VNORM:
        rows = params.rows
        return (fields["blocks"] > LARGEST_COUNT // rows) | (fields["last_bytes"] > rows)
    return fields["m1"] != fields["m2"] if BY_KIND[kind].one_factor else 0


def is_illegal(instruction: Instruction, params: HardwareParams) -> bool:
    """Whether this hardware faults on the instruction."""
    kind = instruction.kind
    return kind not in kinds_of(params) or bool(_illegal(kind, instruction.values, params))


def decode_operation(
    m: Module, params: HardwareParams, instruction: Value, operation: data.View[data.StructLayout], illegal: Value
) -> None:
    """Drive `operation` from an instruction; `illegal` as `is_illegal` says.

    Single field limits are checked before an instruction enters the unit's queue.
    """
    m.d.comb += [operation[name].eq(value) for name, value in _known_defaults().items()]
    for kind in kinds_of(params):
        fields = data.View(instruction_layout(kind), instruction[:INSTRUCTION_BITS])
        unread = (name for name in fields.shape().members if _DEFAULTS.get(name, 0) is None)
        m.d.comb += [operation[name].eq(fields[name]) for name in unread]
    # INT8_MIN is the identity of a maximum: padding never wins. Kinds that this hardware lacks match no case and are
    # illegal.
    m.d.comb += [operation.fill.eq(INT8_MIN), illegal.eq(1)]
    with m.Switch(instruction[: BY_KIND[Kind.VCOPY].field("opcode").width]):
        for kind in kinds_of(params):
            with m.Case(BY_KIND[kind].opcode):
                fields = data.View(instruction_layout(kind), instruction[:INSTRUCTION_BITS])
                members = fields.shape().members
                m.d.comb += [operation[name].eq(fields[name]) for name in _known_defaults() if name in members]
                m.d.comb += [operation[flag].eq(value) for flag, value in _flags(kind).items()]
                m.d.comb += illegal.eq(_illegal(kind, fields, params))
                if BY_KIND[kind].pattern is AccessPattern.TABLE:
                    m.d.comb += operation.out_w.eq(params.table_words)
                if BY_KIND[kind].pattern in _OVER_CHANNELS:
                    # The blocks of a pixel are the lines of its window.
                    m.d.comb += operation.kernel_h.eq(fields.blocks)
                if "zp_in" in fields.shape().members:
                    m.d.comb += operation.fill.eq(fields.zp_in)
