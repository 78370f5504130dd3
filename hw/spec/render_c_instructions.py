"""The C header of the instructions: structs, and the field lists that `intloom_codec.h` expands."""

from intloom.hw.spec.c_text import enum, header, int_enum
from intloom.hw.spec.fields import CHECK_BITS, CHECK_LSB, INSTRUCTION_BYTES, ConvMode, Field, LoadTarget, TableUse
from intloom.hw.spec.instructions import BY_KIND, INSTRUCTIONS, InstructionSpec, Kind
from intloom.hw.spec.program_check import CRC_BITS, INITIAL, POLYNOMIAL

_ABOUT_INSTRUCTIONS = """
Opcodes and fields of all instructions; every field has its meaning and its range.

`INTLOOM_<NAME>_FIELDS(FIELD)` expands `FIELD(member, lsb, width, is_signed, minimum, maximum, initial)` for every field
after the opcode; `INTLOOM_<NAME>_WIDTH` is the number of bits up to the last field.
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
