"""C headers of the instructions: structs and field lists, and the encoder and decoder that expand the lists."""

from intloom.hw.spec.c_text import enum, header, int_enum
from intloom.hw.spec.fields import CHECK_BITS, CHECK_LSB, INSTRUCTION_BYTES, ConvMode, Field, LoadTarget, TableUse
from intloom.hw.spec.instructions import BY_KIND, INSTRUCTIONS, InstructionSpec, Kind
from intloom.hw.spec.program_check import CRC_BITS, INITIAL, POLYNOMIAL

_ABOUT_INSTRUCTIONS = """
Opcodes and fields of all instructions; every field has its meaning and its range.

`INTLOOM_<NAME>_FIELDS(FIELD)` expands `FIELD(member, lsb, width, is_signed, minimum, maximum, initial)` for every field
after the opcode; `INTLOOM_<NAME>_WIDTH` is the number of bits up to the last field.
"""

_ABOUT_CODEC = """
Encoders, decoders and default values of all instructions, from the field lists of intloom_instructions.h.

`intloom_<name>_encode` and `intloom_<name>_decode` return 0, or the number, counted from 1, of the first field that is
out of range (-1: another opcode, or bits set between the last field and the check bits). On an error they write
nothing. `intloom_add_check` writes the check bits and END's CRC of a complete program; the accelerator requires them.
C99 or later; also C++11 or later.
"""

# Preprocessor lists instead of generated functions: the codec does not depend on the instructions, and the compiler
# still sees constant positions and ranges.
_CODEC = """\
static inline void intloom_put(uint8_t *bytes, unsigned lsb, unsigned width, uint64_t value)
{
    for (unsigned i = 0; i < width; i++) {
        unsigned bit = lsb + i;
        uint8_t mask = (uint8_t)(1u << (bit & 7u));
        bytes[bit >> 3] = (uint8_t)((value >> i & 1u) ? bytes[bit >> 3] | mask : bytes[bit >> 3] & (uint8_t)~mask);
    }
}

static inline int64_t intloom_get(const uint8_t *bytes, unsigned lsb, unsigned width, unsigned is_signed)
{
    uint64_t value = 0;
    uint64_t sign = is_signed ? (uint64_t)1 << (width - 1u) : 0;
    for (unsigned i = 0; i < width; i++) {
        unsigned bit = lsb + i;
        value |= (uint64_t)(bytes[bit >> 3] >> (bit & 7u) & 1u) << i;
    }
    return (int64_t)(value ^ sign) - (int64_t)sign;
}

/* The expansions of FIELD. */
#define INTLOOM_INITIAL_(member, lsb, width, is_signed, minimum, maximum, initial) fields->member = initial;
#define INTLOOM_CHECK_(member, lsb, width, is_signed, minimum, maximum, initial) \\
    number++; \\
    if ((int64_t)fields->member < INT64_C(minimum) || (int64_t)fields->member > INT64_C(maximum)) \\
        return number;
#define INTLOOM_PUT_(member, lsb, width, is_signed, minimum, maximum, initial) \\
    intloom_put(bytes, lsb, width, (uint64_t)fields->member);
#define INTLOOM_GET_(member, lsb, width, is_signed, minimum, maximum, initial) \\
    fields->member = intloom_get(bytes, lsb, width, is_signed);

#define INTLOOM_CODEC_(name, NAME) \\
    static inline void intloom_##name##_defaults(struct intloom_##name *fields) \\
    { \\
        INTLOOM_##NAME##_FIELDS(INTLOOM_INITIAL_) \\
    } \\
    static inline int intloom_##name##_check(const struct intloom_##name *fields) \\
    { \\
        int number = 0; \\
        INTLOOM_##NAME##_FIELDS(INTLOOM_CHECK_) \\
        return 0; \\
    } \\
    static inline int intloom_##name##_encode(const struct intloom_##name *fields, \\
                                              uint8_t bytes[INTLOOM_INSTRUCTION_BYTES]) \\
    { \\
        int illegal = intloom_##name##_check(fields); \\
        if (illegal) \\
            return illegal; \\
        memset(bytes, 0, INTLOOM_INSTRUCTION_BYTES); \\
        bytes[0] = INTLOOM_OPCODE_##NAME; \\
        INTLOOM_##NAME##_FIELDS(INTLOOM_PUT_) \\
        return 0; \\
    } \\
    static inline int intloom_##name##_decode(struct intloom_##name *out, \\
                                              const uint8_t bytes[INTLOOM_INSTRUCTION_BYTES]) \\
    { \\
        struct intloom_##name decoded, *fields = &decoded; \\
        int illegal; \\
        if (bytes[0] != INTLOOM_OPCODE_##NAME) \\
            return -1; \\
        for (unsigned bit = INTLOOM_##NAME##_WIDTH; bit < INTLOOM_CHECK_LSB; bit++) \\
            if (intloom_get(bytes, bit, 1u, 0u)) \\
                return -1; \\
        INTLOOM_##NAME##_FIELDS(INTLOOM_GET_) \\
        illegal = intloom_##name##_check(fields); \\
        if (!illegal) \\
            *out = decoded; \\
        return illegal; \\
    }

INTLOOM_INSTRUCTIONS(INTLOOM_CODEC_)

/* Adds the bits of `bytes` below bit `bits` to a CRC-32C. */
static inline uint32_t intloom_crc(uint32_t crc, const uint8_t *bytes, unsigned bits)
{
    for (unsigned i = 0; i < bits; i++) {
        uint32_t odd = (crc ^ (uint32_t)(bytes[i >> 3] >> (i & 7u))) & 1u;
        crc = crc >> 1 ^ (odd ? INTLOOM_CRC_POLYNOMIAL : 0u);
    }
    return crc;
}

static inline void intloom_add_check(uint8_t *program, uint32_t instructions)
{
    uint32_t crc = INTLOOM_CRC_INITIAL;
    for (uint32_t i = 0; i < instructions; i++) {
        uint8_t *bytes = program + (size_t)i * INTLOOM_INSTRUCTION_BYTES;
        uint32_t parity = 0;
        intloom_put(bytes, INTLOOM_CHECK_LSB, INTLOOM_CHECK_BITS, 0);
        if (bytes[0] == INTLOOM_OPCODE_END)
            intloom_put(bytes, INTLOOM_END_CRC_LSB, INTLOOM_CRC_BITS, intloom_crc(crc, bytes, INTLOOM_END_CRC_LSB));
        crc = intloom_crc(crc, bytes, 8u * INTLOOM_INSTRUCTION_BYTES);
        for (uint32_t rest = crc; rest; rest &= rest - 1u)
            parity ^= 1u;
        intloom_put(bytes, INTLOOM_CHECK_LSB, INTLOOM_CHECK_BITS, (uint64_t)crc << 1 | parity);
    }
}
"""


def _c_type(field: Field) -> str:
    bits = 64 if field.width > 32 else 32
    return f"int{bits}_t" if field.signed else f"uint{bits}_t"


def _struct(spec: InstructionSpec) -> str:
    lines = [f"/* {spec.doc} */", f"struct intloom_{spec.kind.lower()} {{"]
    for f in spec.fields[1:]:
        unit = f" [{f.unit}]" if f.unit else ""
        lines.append(f"    {_c_type(f)} {f.name}; /* {f.meaning} {f.minimum} to {f.maximum}{unit} */")
    return "\n".join([*lines, "};\n"])


def _field_list(spec: InstructionSpec) -> str:
    lines = [
        f"#define INTLOOM_{spec.kind}_WIDTH {sum(f.width for f in spec.fields)}u",
        f"#define INTLOOM_{spec.kind}_FIELDS(FIELD)",
    ]
    for f in spec.fields[1:]:
        position = f"{spec.offsets[f.name]}u, {f.width}u, {int(f.signed)}u"
        lines.append(f"    FIELD({f.name}, {position}, {f.minimum}, {f.maximum}, {f.default})")
    return lines[0] + "\n" + " \\\n".join(lines[1:]) + "\n"


def _instruction_list() -> str:
    lines = ["#define INTLOOM_INSTRUCTIONS(INSTRUCTION)"]
    lines += [f"    INSTRUCTION({s.kind.lower()}, {s.kind})" for s in INSTRUCTIONS]
    return " \\\n".join(lines) + "\n"


def render_instructions(file: str) -> str:
    """Opcodes, a struct of every instruction's fields, and the lists of fields and of instructions."""
    numbers = {
        "INSTRUCTION_BYTES": INSTRUCTION_BYTES,
        "CHECK_LSB": CHECK_LSB,
        "CHECK_BITS": CHECK_BITS,
        "CRC_BITS": CRC_BITS,
        "CRC_INITIAL": INITIAL,
        "CRC_POLYNOMIAL": POLYNOMIAL,
        "END_CRC_LSB": BY_KIND[Kind.END].offsets["crc"],
    }
    body = [
        "".join(f"#define INTLOOM_{name} {value}u\n" for name, value in numbers.items()),
        enum("opcode", "OPCODE", ((s.kind, s.opcode) for s in INSTRUCTIONS)),
        int_enum("target", LoadTarget),
        enum("table_use", "TABLE", ((t.name, int(t)) for t in TableUse)),
        enum("conv_mode", "CONV", ((t.name, int(t)) for t in ConvMode)),
        *(text for s in INSTRUCTIONS for text in (_struct(s), _field_list(s))),
        _instruction_list(),
    ]
    return header(file, _ABOUT_INSTRUCTIONS, body, ["<stdint.h>"])


def render_codec(file: str, instructions: str) -> str:
    """Encoders and decoders; `instructions` is the header with the structs and lists."""
    includes = ["<stddef.h>", "<stdint.h>", "<string.h>", f'"{instructions}"']
    return header(file, _ABOUT_CODEC, [_CODEC], includes)
