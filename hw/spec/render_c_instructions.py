"""C headers of the instructions: a struct of every instruction's fields, and its encoder and decoder."""

from __future__ import annotations

from intloom.hw.spec.c_text import enum, header, int_enum
from intloom.hw.spec.fields import INSTRUCTION_BYTES, Field, TableUse, Target
from intloom.hw.spec.instructions import INSTRUCTIONS, InstructionSpec

_ABOUT_CODEC = """
Positions, defaults, encoders and decoders of all instructions; intloom_instructions.h has the fields.

`intloom_<name>_encode` and `intloom_<name>_decode` return 0, or the number, counted from 1, of the first field that is
out of range (-1: another opcode, or bits set above the last field). On an error they write nothing.
C99 or later; also C++11 or later.
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


def _name(spec: InstructionSpec) -> str:
    return f"intloom_{spec.kind.lower()}"


def _codec(spec: InstructionSpec) -> str:
    name = _name(spec)
    return "\n".join([_positions(spec), _defaults(spec, name), _encoder(spec, name), _decoder(spec, name)])


def render_instructions(file: str) -> str:
    """Opcodes, and a struct of every instruction's fields."""
    body = [
        enum("opcode", "OPCODE", ((s.kind, s.opcode) for s in INSTRUCTIONS)),
        int_enum("target", Target),
        enum("table_use", "TABLE", ((t.name, int(t)) for t in TableUse)),
        *(_struct(s, _name(s)) for s in INSTRUCTIONS),
    ]
    about = "Opcodes and fields of all instructions; every field has its meaning and its range."
    return header(file, about, body, ["<stdint.h>"])


def render_codec(file: str, instructions: str) -> str:
    """Encoders and decoders; `instructions` is the header with the structs."""
    includes = ["<stdint.h>", "<string.h>", f'"{instructions}"']
    body = [f"#define INTLOOM_INSTRUCTION_BYTES {INSTRUCTION_BYTES}u\n", _CODEC, *map(_codec, INSTRUCTIONS)]
    return header(file, _ABOUT_CODEC, body, includes)
