"""The C header: opcodes, a struct with encoder and decoder for every instruction, registers, parameters."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from intloom.hw.spec.fields import INSTRUCTION_BYTES, ISA_VERSION, Field, TableUse, Target, Unit
from intloom.hw.spec.instructions import INSTRUCTIONS, InstructionSpec
from intloom.hw.spec.params import PRESETS, HardwareParams
from intloom.hw.spec.regs import MAGIC, REGISTERS, ROUNDING_CODES, VERSION, Cause, Register, Stall

_HEAD = """\
/* Generated from hw/spec by `make generated`: do not edit.
 *
 * For every instruction there are a struct of its fields, `intloom_<name>_defaults`, `intloom_<name>_encode` and
 * `intloom_<name>_decode`. Encoders and decoders return 0, or the number, counted from 1, of the first field that is
 * out of range (-1: another opcode, or bits set above the last field). On an error they write nothing.
 * C99 or later; also C++11 or later.
 */
#ifndef INTLOOM_H
#define INTLOOM_H

#include <stdint.h>
#include <string.h>
"""

_CODEC = """\
static inline void intloom_put(uint8_t *bytes, unsigned lsb, unsigned width, uint64_t value)
{
    for (unsigned i = 0; i < width; i++) {
        unsigned bit = lsb + i;
        uint8_t mask = (uint8_t)(1u << (bit & 7u));
        bytes[bit >> 3] = (uint8_t)((value >> i & 1u) ? bytes[bit >> 3] | mask : bytes[bit >> 3] & (uint8_t)~mask);
    }
}

static inline uint64_t intloom_get(const uint8_t *bytes, unsigned lsb, unsigned width)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < width; i++) {
        unsigned bit = lsb + i;
        value |= (uint64_t)(bytes[bit >> 3] >> (bit & 7u) & 1u) << i;
    }
    return value;
}

static inline int64_t intloom_get_signed(const uint8_t *bytes, unsigned lsb, unsigned width)
{
    uint64_t sign = (uint64_t)1 << (width - 1u);
    return (int64_t)(intloom_get(bytes, lsb, width) ^ sign) - (int64_t)sign;
}
"""


def _c_type(field: Field) -> str:
    bits = 64 if field.width > 32 else 32
    return f"int{bits}_t" if field.signed else f"uint{bits}_t"


def _literal(field: Field, value: int) -> str:
    if not field.signed:
        return f"{value}u"
    # The most negative value of a type has no literal of its own in C.
    wide = "LL" if field.width > 32 else ""
    return f"({value + 1}{wide} - 1)" if value < 0 else f"{value}{wide}"


def _illegal(field: Field) -> str:
    """The C condition for a struct member out of range; empty if its type excludes such a value."""
    bits = 64 if field.width > 32 else 32
    lowest = -(1 << (bits - 1)) if field.signed else 0
    highest = (1 << (bits - field.signed)) - 1
    tests = []
    if field.minimum > lowest:
        tests.append(f"fields->{field.name} < {_literal(field, field.minimum)}")
    if field.maximum < highest:
        tests.append(f"fields->{field.name} > {_literal(field, field.maximum)}")
    return " || ".join(tests)


def _enum(name: str, prefix: str, values: Iterable[tuple[str, int]]) -> str:
    lines = [f"    INTLOOM_{prefix}_{key} = {value}," for key, value in values]
    return f"enum intloom_{name} {{\n" + "\n".join(lines) + "\n};\n"


def _int_enum(name: str, members: type[IntEnum]) -> str:
    return _enum(name, name.upper(), ((m.name, int(m)) for m in members))


def _struct(spec: InstructionSpec, name: str) -> str:
    lines = [f"/* {spec.doc} */", f"struct {name} {{"]
    for f in spec.fields[1:]:
        unit = f" [{f.unit}]" if f.unit else ""
        lines.append(f"    {_c_type(f)} {f.name}; /* {f.doc} {f.minimum} to {f.maximum}{unit} */")
    return "\n".join([*lines, "};\n"])


def _positions(spec: InstructionSpec) -> str:
    upper = f"INTLOOM_{spec.kind}"
    lines = []
    for f in spec.fields:
        lines.append(f"#define {upper}_{f.name.upper()}_LSB {spec.offsets[f.name]}u")
        lines.append(f"#define {upper}_{f.name.upper()}_WIDTH {f.width}u")
    return "\n".join(lines) + "\n"


def _position(spec: InstructionSpec, field: Field) -> str:
    upper = f"INTLOOM_{spec.kind}_{field.name.upper()}"
    return f"{upper}_LSB, {upper}_WIDTH"


def _defaults(spec: InstructionSpec, name: str) -> str:
    lines = [
        f"static inline void {name}_defaults(struct {name} *fields)",
        "{",
        "    memset(fields, 0, sizeof *fields);",
    ]
    lines += [f"    fields->{f.name} = {_literal(f, f.default)};" for f in spec.fields[1:] if f.default]
    return "\n".join([*lines, "}\n"])


def _checks(spec: InstructionSpec) -> list[str]:
    lines = []
    for number, f in enumerate(spec.fields[1:], 1):
        if condition := _illegal(f):
            lines += [f"    if ({condition})", f"        return {number};"]
    return lines


def _encoder(spec: InstructionSpec, name: str) -> str:
    lines = [
        f"static inline int {name}_encode(const struct {name} *fields, uint8_t bytes[INTLOOM_INSTRUCTION_BYTES])",
        "{",
    ]
    lines += _checks(spec)
    lines += ["    memset(bytes, 0, INTLOOM_INSTRUCTION_BYTES);"]
    lines += [f"    intloom_put(bytes, {_position(spec, spec.fields[0])}, INTLOOM_OPCODE_{spec.kind});"]
    lines += [f"    intloom_put(bytes, {_position(spec, f)}, (uint64_t)fields->{f.name});" for f in spec.fields[1:]]
    return "\n".join([*lines, "    return 0;", "}\n"])


def _decoder(spec: InstructionSpec, name: str) -> str:
    used = sum(f.width for f in spec.fields)
    lines = [
        f"static inline int {name}_decode(struct {name} *out, const uint8_t bytes[INTLOOM_INSTRUCTION_BYTES])",
        "{",
    ]
    lines += [f"    struct {name} decoded, *fields = &decoded;"]
    lines += [f"    if (bytes[0] != INTLOOM_OPCODE_{spec.kind})", "        return -1;"]
    lines += [f"    for (unsigned bit = {used}u; bit < 8u * INTLOOM_INSTRUCTION_BYTES; bit++)"]
    lines += ["        if (intloom_get(bytes, bit, 1u))", "            return -1;"]
    for f in spec.fields[1:]:
        getter = "intloom_get_signed" if f.signed else "intloom_get"
        lines.append(f"    fields->{f.name} = ({_c_type(f)}){getter}(bytes, {_position(spec, f)});")
    return "\n".join([*lines, *_checks(spec), "    *out = decoded;", "    return 0;", "}\n"])


def _instruction(spec: InstructionSpec) -> str:
    name = f"intloom_{spec.kind.lower()}"
    parts = [_struct(spec, name), _positions(spec), _defaults(spec, name), _encoder(spec, name), _decoder(spec, name)]
    return "\n".join(parts)


def _register(register: Register) -> str:
    upper = f"INTLOOM_REG_{register.name}"
    lines = [f"#define {upper} 0x{register.offset:03x}u /* {register.access}: {register.doc} */"]
    for f in register.fields:
        lines.append(f"#define {upper}_{f.name.upper()}_LSB {f.lsb}u")
        lines.append(f"#define {upper}_{f.name.upper()}_MASK 0x{((1 << f.width) - 1) << f.lsb:08x}u /* {f.doc} */")
    return "\n".join(lines)


def _parameters(params: HardwareParams, name: str) -> str:
    lines = [f"/* Parameters of hardware '{name}'; portable software reads the CAP registers instead. */"]
    for key, value in params.to_dict().items():
        number = ROUNDING_CODES[params.match] if key == "match" else int(value)
        lines.append(f"#define INTLOOM_PARAM_{key.upper()} {number}u")
    lines.append(f"#define INTLOOM_PARAM_FINGERPRINT 0x{params.fingerprint():08x}u")
    return "\n".join(lines) + "\n"


def _identity() -> str:
    lines = [
        f"#define INTLOOM_MAGIC 0x{MAGIC:08x}u",
        f"#define INTLOOM_REGISTER_VERSION {VERSION}u",
        f"#define INTLOOM_ISA_VERSION {ISA_VERSION}u",
        f"#define INTLOOM_INSTRUCTION_BYTES {INSTRUCTION_BYTES}u",
        *(f"#define INTLOOM_FINGERPRINT_{k.upper()} 0x{p.fingerprint():08x}u" for k, p in PRESETS.items()),
    ]
    return "\n".join(lines) + "\n"


def render_c(params: HardwareParams, name: str) -> str:
    """The header for hardware `params`; `name` appears in its comments."""
    enums = [_int_enum(e.__name__.lower(), e) for e in (Unit, Target, Cause, Stall)]
    parts = [
        _HEAD,
        _identity(),
        _parameters(params, name),
        _enum("opcode", "OPCODE", ((s.kind, s.opcode) for s in INSTRUCTIONS)),
        *enums,
        _enum("table_use", "TABLE", ((t.name, int(t)) for t in TableUse)),
        "/* Registers: byte offsets from the AXI4-Lite base. */\n" + "\n".join(map(_register, REGISTERS)) + "\n",
        _CODEC,
        *map(_instruction, INSTRUCTIONS),
        "#endif",
    ]
    return "\n".join(parts) + "\n"
