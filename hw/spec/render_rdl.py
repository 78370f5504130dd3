"""The register map in SystemRDL 2.0."""

from intloom.hw.spec.regs import ADDRESS_BITS, REGISTERS, Access, BitField, Register

_PROPERTIES = {
    Access.RO: "sw = r; hw = w;",
    Access.RW: "sw = rw; hw = r;",
    Access.W1C: "sw = rw; onwrite = woclr; hw = w;",
    Access.W1S: "sw = rw; onwrite = woset; hw = r;",
    Access.WO: "sw = w; hw = r; singlepulse;",
}

_WHOLE = BitField("value", 0, 32, "The register's value.")


def _text(sentence: str) -> str:
    return '"' + sentence.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _field(register: Register, field: BitField) -> str:
    reset = register.reset >> field.lsb & ((1 << field.width) - 1)
    properties = f"desc = {_text(field.doc)}; {_PROPERTIES[register.access]}"
    # A read-only register has a reset value only if it is constant.
    value = f" = 0x{reset:x}" if register.access is not Access.RO or reset else ""
    return f"        field {{ {properties} }} {field.name}[{field.lsb + field.width - 1}:{field.lsb}]{value};"


def _register(register: Register) -> str:
    fields = "\n".join(_field(register, f) for f in register.fields or (_WHOLE,))
    head = f"    reg {{\n        desc = {_text(register.doc)};"
    return f"{head}\n{fields}\n    }} {register.name} @ 0x{register.offset:03X};"


def render_rdl() -> str:
    """The address map `intloom`."""
    lines = [
        "// Generated from hw/spec by `make generated`: do not edit.",
        "addrmap intloom {",
        f'    name = "Intloom registers, {1 << ADDRESS_BITS} bytes";',
        "    default regwidth = 32;",
        "    default accesswidth = 32;",
        "    littleendian;",
        *map(_register, REGISTERS),
        "};",
    ]
    return "\n".join(lines) + "\n"
