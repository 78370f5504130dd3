"""Manual pages in Markdown: the instruction set with bit diagrams, the registers, the parameters."""

import ast
import dataclasses
import inspect
from collections.abc import Iterable, Sequence
from enum import IntEnum
from itertools import pairwise
from types import ModuleType

from intloom.hw.spec import constant_check, formats, norm, program_check, timing, vector_depthwise, word_code
from intloom.hw.spec.bit_diagram import bit_diagram
from intloom.hw.spec.fields import CHECK_BITS, INSTRUCTION_BITS, ISA_VERSION, Field
from intloom.hw.spec.instructions import INSTRUCTIONS, InstructionSpec
from intloom.hw.spec.params import PRESETS, HardwareParams
from intloom.hw.spec.regs import REGISTERS, VERSION, Access, Cause, Register, Stall

_NOTE = "<!-- Generated from hw/spec by `make generated`: do not edit. -->\n"

_ISA_INTRO = f"""\
# Instructions

Instruction set version {ISA_VERSION}. Every instruction is {INSTRUCTION_BITS} bits, little-endian in memory, and
starts with a header: the opcode, and for each unit the number of its instructions that must have finished before this
one issues. The highest {CHECK_BITS} bits are [check bits](#program-check); bits between the last field and them must be
zero. A field value out of range stops the accelerator with cause `BAD_FIELD`; an unknown opcode stops it with
`BAD_OPCODE`, changed bits with `PROGRAM_CHECK`.

In assembly text, an instruction is its name followed by `field=value`. Omitted fields have their defaults:

```
LOAD wait_mac=3 dram=4096 local=0x100 n0=64 n1=8 dram_s1=640 local_s1=64
```

[Operation of CONV](#operation-of-conv) has its exact sums and addresses. The constants that
[CONV](#constants-of-conv) and [VDEPTHWISE](#constants-of-vdepthwise) read are listed at the end.
"""

_REGISTER_INTRO = f"""\
# Registers

Register map version {VERSION}: 32-bit registers behind the AXI4-Lite port, at these byte offsets. Access: `ro` read
only; `rw` read and write; `w1c` read flags, write 1 to clear; `w1s` read flags, write 1 to set until the reset
input; `wo` write 1 for a pulse, reads as 0. Other addresses read as 0 and ignore writes. With the parameter
`register_errors` these accesses, and writes to `ro` registers, are answered with SLVERR, else with OKAY. Writes to
a register that LOCK makes read-only are ignored and answered with OKAY.
"""

_PARAMETER_INTRO = """\
# Hardware parameters

Use a preset, a TOML file with all fields, or a TOML file with `preset = "base"` and the fields that differ:

```toml
preset = "base"
weight_kib = 256
match = "exact"
```

Invalid or contradictory values are errors that name the values. Software reads every parameter from the capability
registers. Every program contains the parameters' fingerprint, so a program cannot run on other hardware.
"""


_CONV = """\
## Operation of CONV

```
for output block (cols channels):          read [table] [residual constants] (first block only), then channel parameters
  for strip of at most `strip` pixels of the out_h x out_w tile, in raster order, strips as equal as possible:
    for kernel row, for kernel column, for input block:                 next weight tile
      for pixel of the strip: acc[pixel] += word . tile                 (first tile: =, or continued)
    readout: acc + bias [- zp_in * sum of the column's weights] -> requantize -> table -> residual -> write
```

There are n = ceil(pixels / strip) strips; the first pixels % n of them have one pixel more than the others.

**Input.** The word of output pixel (oy, ox) under tap (ky, kx) of input block b and output block ob is at input row
iy = iy0 + oy * stride_h + ky * dilation_h and column ix = ix0 + ox * stride_w + kx * dilation_w. Outside 0 <= iy <
in_h, 0 <= ix < in_w every byte is `zp_in`. Otherwise its address is in_base + ob * in_block_step + b * in_plane +
row_off + ix. Here row_off is in_row_off for iy0 and increases by in_row per input row; if in_ring is not 0, it is
reduced modulo in_ring. All address arithmetic is modulo 2^20.

In mode 1 (packed) a word holds rows/4 neighboring pixels of four bytes, kernel columns count groups of rows/4 pixels,
ix = ix0 + ox * stride_w + kx * dilation_w * rows/4 is a pixel, and the input is the rows/4 pixels from there on: from
the word ix // (rows/4) and the next one, with `zp_in` in place of pixels outside 0 <= x < in_w.

**Sums.** The weights are the int8 of the tile minus the zero point of their column. With `subtract_zp_in`, each sum
loses `zp_in` times the sum of all weights of its column and block, so that it is a sum of (x - zp_in) * w. Sums and
this product wrap in `acc_bits`; acc + bias - product wraps in 32 bits.

With `continue_sums`, the sums start from those of the CONV before, pixel by pixel: a sum over more input channels than
the weight memory holds weights for is made by several instructions. Both have one output block and the same number of
pixels, at most `strip`. Each of them writes its results; only the last one's have all addends.

**Residual.** The result is affine(result byte, residual byte), see [Numerics](numerics.md). The residual byte of
channel k is byte k % rows of word res_base + (k // rows) * res_plane + oy * res_row + ox.

**Output.** Channel k of the instruction (k = block * cols + column) is written to byte (out_lane + k) % rows of word
out_base + ((out_lane + k) // rows) * out_plane + oy * out_row + ox * out_x. All `cols` channels of every block are
written."""


_SECTIONS: tuple[tuple[str, ModuleType, tuple[str, ...]], ...] = (
    ("Constants of VDEPTHWISE", vector_depthwise, ("TAPS", "GROUPS", "SHIFT_BITS")),
    ("Operation of VNORM", norm, ("CONSTANT_WORDS", "LARGEST_COUNT")),
    ("Coded words", word_code, ()),
    ("Check of constants", constant_check, ()),
    ("Program check", program_check, ("INITIAL", "CHECK_BITS")),
)
"""Sections of `isa.md` from the docstrings of the modules that define them, with the values of these constants."""


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _field_row(spec: InstructionSpec, number: int, field: Field) -> tuple[object, ...]:
    low = spec.offsets[field.name]
    limits = f"{spec.opcode:#04x}" if field.name == "opcode" else f"{field.minimum} to {field.maximum}"
    default = "" if field.name == "opcode" else field.default
    return number, f"`{field.name}`", f"{low + field.width - 1}:{low}", limits, default, field.unit, field.meaning


def _instruction(spec: InstructionSpec) -> str:
    rows = (_field_row(spec, number, f) for number, f in enumerate(spec.fields))
    table = _table(("#", "field", "bits", "limits", "default", "unit", "meaning"), rows)
    title = f"## {spec.kind}\n\nOpcode `{spec.opcode:#04x}`, {spec.unit.name} unit. {spec.doc}\n"
    return f"{title}\n```\n{bit_diagram(spec)}```\n\n{table}"


def _constants() -> str:
    """The formats of CONV's constants, from the docstring of the module that defines them."""
    introduction, _, rest = (inspect.getdoc(formats) or "").partition("\n\n")[2].partition("\n\n")
    parts = rest.split("\n\n")
    return "\n\n".join(["## Constants of CONV", introduction, *parts[:-1]]) + "\n"


def _with_values(module: ModuleType, *names: str) -> str:
    """A module's docstring without its first paragraph, with the values of these constants for their names."""
    text = (inspect.getdoc(module) or "").partition("\n\n")[2]
    for name in names:
        value = getattr(module, name)
        text = text.replace(f"`{name}`", str(value) if value < 256 else f"{value:#x}")
    return text


def render_isa() -> str:
    """The page `isa.md`."""
    rows = ((f"[{s.kind}](#{s.kind.lower()})", f"`{s.opcode:#04x}`", s.unit.name, s.doc) for s in INSTRUCTIONS)
    overview = _table(("name", "opcode", "unit", "operation"), rows)
    ends = (f"## {title}\n\n{_with_values(module, *names)}\n" for title, module, names in _SECTIONS)
    return "\n".join([_NOTE, _ISA_INTRO, overview, *map(_instruction, INSTRUCTIONS), _CONV, _constants(), *ends])


def _member_docs(members: type[IntEnum]) -> dict[str, str]:
    """The docstring below each member of an enum, where present."""
    lines = [line.strip() for line in inspect.getsource(members).splitlines()]
    pairs = zip(lines, [*lines[1:], ""], strict=True)
    return {a.split(" = ")[0]: b.strip('"') for a, b in pairs if " = " in a and b.startswith('"""')}


def _enum_table(title: str, members: type[IntEnum]) -> str:
    docs = _member_docs(members)
    rows = ((int(m), f"`{m.name}`", docs.get(m.name, "")) for m in members)
    return f"## {title}\n\n{inspect.getdoc(members)}\n\n" + _table(("code", "name", "meaning"), rows)


def _register_fields(register: Register) -> str:
    rows = ((f"`{f.name}`", f"{f.lsb + f.width - 1}:{f.lsb}", f.doc) for f in register.fields)
    return f"### {register.name}\n\n" + _table(("field", "bits", "meaning"), rows)


def _reset(register: Register) -> str:
    """The value after reset; empty for read-only registers whose value depends on the parameters or on a run."""
    return "" if register.access is Access.RO and not register.reset else f"`0x{register.reset:x}`"


def render_registers() -> str:
    """The page `registers.md`."""
    rows = ((f"`0x{r.offset:03x}`", f"`{r.name}`", r.access, _reset(r), r.doc) for r in REGISTERS)
    parts = [
        _NOTE,
        _REGISTER_INTRO,
        _table(("offset", "name", "access", "reset", "meaning"), rows),
        "## Fields\n",
        *(_register_fields(r) for r in REGISTERS if r.fields),
        _enum_table("Error causes", Cause),
        _enum_table("Stalls", Stall),
    ]
    return "\n".join(parts)


def _default(field: dataclasses.Field[object]) -> str:
    return "" if field.default is dataclasses.MISSING else f"`{_shown(field.default)}`"


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _derived() -> dict[str, str]:
    """Names and sentences of the properties of `HardwareParams`."""
    members = vars(HardwareParams).items()
    return {name: inspect.getdoc(p) or "" for name, p in members if isinstance(p, property)}


def _latencies() -> list[tuple[str, int | float, str]]:
    """Name, value and description of every public constant of `timing`."""
    body = ast.parse(inspect.getsource(timing)).body
    rows = []
    for statement, below in pairwise(body):
        match statement, below:
            case ast.Assign(targets=[ast.Name(id=name)]), ast.Expr(value=ast.Constant(value=str(text))):
                if not name.startswith("_"):
                    rows.append((f"`{name}`", getattr(timing, name), " ".join(text.split())))
    return rows


def render_parameters() -> str:
    """The page `parameters.md`."""
    chosen = dataclasses.fields(HardwareParams)
    fields = _table(("name", "default", "meaning"), ((f"`{f.name}`", _default(f), f.metadata["doc"]) for f in chosen))
    heads = ("name", *PRESETS)
    preset_rows = [(f"`{f.name}`", *(_shown(getattr(p, f.name)) for p in PRESETS.values())) for f in chosen]
    preset_rows.append(("fingerprint", *(f"`{p.fingerprint():08x}`" for p in PRESETS.values())))
    derived_rows = ((f"`{n}`", *(getattr(p, n) for p in PRESETS.values()), text) for n, text in _derived().items())
    parts = [
        _NOTE,
        _PARAMETER_INTRO,
        "## Fields\n",
        fields,
        "## Presets\n",
        _table(heads, preset_rows),
        "## Derived sizes\n",
        _table((*heads, "meaning"), derived_rows),
        "## Latencies and rates\n",
        "Clock cycles, from `hw/spec/timing.py`. They do not depend on the parameters unless the text says so.\n",
        _table(("name", "value", "meaning"), _latencies()),
    ]
    return "\n".join(parts)
