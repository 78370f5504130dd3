"""The instruction table. Encoder, decoder, assembler, RTL layout, C header and manual all derive from it.

Every instruction is 512 bits, little-endian in memory. It starts with a header: the opcode and, for each of the four
units, a count of finished instructions to wait for. Units work their own queues in order; `wait_mac=7` holds an
instruction back until the MAC unit has finished seven instructions of this program. A wait therefore names an
instruction, not a token: waits may be repeated, left out when implied, and can never get lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from functools import cached_property
from types import MappingProxyType

from .errors import EncodingError

ISA_VERSION = 1
INSTRUCTION_BITS = 512
INSTRUCTION_BYTES = INSTRUCTION_BITS // 8
COUNT_BITS = 20
SCRATCH_BITS = 20
DRAM_BITS = 32
COORDINATE_BITS = 14
"""Bits of a height or width; first coordinates have a sign and one more bit, since padding starts before zero."""


class Unit(IntEnum):
    """The four units, each with a queue and a count of finished instructions, and the control unit."""

    LOAD = 0
    MAC = 1
    VEC = 2
    STORE = 3
    CONTROL = 4


QUEUED_UNITS = (Unit.LOAD, Unit.MAC, Unit.VEC, Unit.STORE)


class Target(IntEnum):
    """Memory that a load writes."""

    SCRATCH = 0
    WEIGHT = 1


class TableUse(IntEnum):
    """What a MAC instruction does with the 256-byte table after requantisation."""

    NONE = 0
    KEEP = 1
    LOAD = 2


@dataclass(frozen=True)
class Field:
    """One field: its place follows from the order in the table."""

    name: str
    width: int
    doc: str
    signed: bool = False
    low: int | None = None
    high: int | None = None
    unit: str = ""

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
        """The value of a field that is left out: zero, or the nearest legal value to it."""
        return min(max(0, self.minimum), self.maximum)


def _address(name: str, doc: str) -> Field:
    return Field(name, SCRATCH_BITS, doc, unit="words")


def _extent(name: str, doc: str) -> Field:
    return Field(name, COORDINATE_BITS, doc, low=1, unit="pixels")


def _row(name: str, doc: str) -> Field:
    return Field(name, 16, doc, unit="words")


HEADER = (
    Field("opcode", 8, "Which instruction this is."),
    *(
        Field(
            f"wait_{u.name.lower()}",
            COUNT_BITS,
            f"Start only when the {u.name} unit has finished this many instructions.",
        )
        for u in QUEUED_UNITS
    ),
)


class Kind(StrEnum):
    """Names of all instructions, for code that builds them."""

    BEGIN = "BEGIN"
    END = "END"
    LOAD = "LOAD"
    STORE = "STORE"
    CONV = "CONV"
    VTABLE = "VTABLE"
    VCOPY = "VCOPY"
    VADD = "VADD"
    VMUL = "VMUL"
    VMAX = "VMAX"
    VAVG = "VAVG"


@dataclass(frozen=True)
class InstructionSpec:
    """One row of the table: name, opcode, the unit that runs it, its own fields after the header."""

    kind: Kind
    opcode: int
    unit: Unit
    doc: str
    body: tuple[Field, ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        """Header and body, from bit 0 upwards."""
        return HEADER + self.body

    @cached_property
    def offsets(self) -> Mapping[str, int]:
        """Bit number of each field's lowest bit."""
        places: dict[str, int] = {}
        at = 0
        for f in self.fields:
            places[f.name] = at
            at += f.width
        if at > INSTRUCTION_BITS:
            raise EncodingError(f"{self.kind} must fit {INSTRUCTION_BITS} bits, not {at}")
        return MappingProxyType(places)

    def field(self, name: str) -> Field:
        """The field called `name`."""
        for f in self.fields:
            if f.name == name:
                return f
        raise EncodingError(f"{self.kind} has no field {name!r}: it has {', '.join(f.name for f in self.fields)}")


_MOVE = (
    Field("dram", DRAM_BITS, "First word in memory, counted from the memory base register.", unit="words"),
    _address("local", "First word in the scratchpad or weight memory."),
    Field("n0", SCRATCH_BITS, "Words in a contiguous run.", low=1, unit="words"),
    Field("n1", 16, "Runs in a plane.", low=1),
    Field("n2", 16, "Planes.", low=1),
    Field("dram_s1", DRAM_BITS, "Step in memory from run to run.", unit="words"),
    Field("dram_s2", DRAM_BITS, "Step in memory from plane to plane.", unit="words"),
    _address("local_s1", "Step in local memory from run to run."),
    _address("local_s2", "Step in local memory from plane to plane."),
)

_OUTPUT = (
    _extent("out_h", "Output rows."),
    _extent("out_w", "Output pixels in a row."),
    _address("out_base", "First output word."),
    _address("out_plane", "Step from one output channel block to the next."),
    _row("out_row", "Step from one output row to the next."),
    Field("out_x", 4, "Step from one output pixel to the next.", low=1, unit="words"),
)

_VECTOR_OUTPUT = (
    *_OUTPUT,
    Field("blocks", 12, "Channel blocks.", low=1),
    Field("table", 1, "Pass every result byte through the vector table."),
)

_A_INPUT = (
    _address("a_base", "First word of operand A."),
    _address("a_plane", "Step of A from one channel block to the next."),
    _row("a_row", "Step of A from one row to the next."),
)

_B_INPUT = (
    _address("b_base", "First word of operand B."),
    _address("b_plane", "Step of B from one channel block to the next."),
    _row("b_row", "Step of B from one row to the next."),
)

_AFFINE = (
    Field("m1", 32, "Factor of the first operand.", signed=True),
    Field("m2", 32, "Factor of the second operand.", signed=True),
    Field("c", 48, "Constant added before the shift.", signed=True),
    Field("shift", 6, "Right shift.", high=47, unit="bits"),
    Field("even", 1, "Ties go to even; else up."),
)

_WINDOW = (
    _extent("in_h", "Rows of the input."),
    _extent("in_w", "Pixels in an input row."),
    Field(
        "iy0", COORDINATE_BITS + 1, "Input row under the window's top row at output row 0.", signed=True, unit="pixels"
    ),
    Field(
        "ix0",
        COORDINATE_BITS + 1,
        "Input column under the window's left column at output column 0.",
        signed=True,
        unit="pixels",
    ),
    Field("kernel_h", 8, "Window height.", low=1),
    Field("kernel_w", 8, "Window width.", low=1),
    Field("stride_h", 4, "Input rows from one output row to the next.", low=1),
    Field("stride_w", 4, "Input pixels from one output pixel to the next.", low=1),
)

INSTRUCTIONS: tuple[InstructionSpec, ...] = (
    InstructionSpec(
        Kind.BEGIN,
        0x01,
        Unit.CONTROL,
        "First instruction of every program. The hardware refuses another version or fingerprint with cause WRONG_PROGRAM.",
        (
            Field("version", 16, "Instruction set version."),
            Field("fingerprint", 32, "Fingerprint of the parameters that the program was made for."),
        ),
    ),
    InstructionSpec(
        Kind.END,
        0x02,
        Unit.CONTROL,
        "Last instruction. When its waits hold and every queue and unit is empty, the accelerator is done.",
        (),
    ),
    InstructionSpec(
        Kind.LOAD,
        0x10,
        Unit.LOAD,
        "Copy n2 planes of n1 runs of n0 words from memory. Weight memory addresses wrap at its end.",
        (Field("target", 1, "0: scratchpad, 1: weight memory."), *_MOVE),
    ),
    InstructionSpec(Kind.STORE, 0x20, Unit.STORE, "Copy n2 planes of n1 runs of n0 words to memory.", _MOVE),
    InstructionSpec(
        Kind.CONV,
        0x30,
        Unit.MAC,
        "Convolve one tile: for each output block, for each strip of pixels, for each plane, kernel row, kernel column and "
        "input block, one weight tile meets the strip; then the sums are requantised and written. Input words outside "
        "in_h x in_w read as zp_in.",
        (
            _address("in_base", "First word of the input buffer."),
            _address("in_row_off", "Offset in a plane of input row iy0, modulo in_ring when that is not 0."),
            _address("in_ring", "Words after which row offsets wrap to 0; 0: they never wrap."),
            _address("in_plane", "Step from one input channel block to the next."),
            _row("in_row", "Step from one input row to the next."),
            _address(
                "in_block_step",
                "Added to in_base after every output block: 0 for a full, in_plane for a depthwise convolution.",
            ),
            _extent("in_h", "Rows of the whole input."),
            _extent("in_w", "Pixels in an input row."),
            Field(
                "iy0",
                COORDINATE_BITS + 1,
                "Input row under the kernel's first row at output row 0.",
                signed=True,
                unit="pixels",
            ),
            Field(
                "ix0",
                COORDINATE_BITS + 1,
                "Input column under the kernel's first column at output column 0.",
                signed=True,
                unit="pixels",
            ),
            Field(
                "packed",
                1,
                "Input words hold rows/4 pixels of 4 channels, and kernel_w counts groups of rows/4 pixels.",
            ),
            Field("kernel_h", 4, "Kernel rows.", low=1),
            Field("kernel_w", 4, "Kernel columns.", low=1),
            Field("stride_h", 3, "Input rows from one output row to the next.", low=1, high=4),
            Field("stride_w", 3, "Input pixels from one output pixel to the next.", low=1, high=4),
            Field("dilation_h", 4, "Input rows from one kernel row to the next.", low=1),
            Field("dilation_w", 4, "Input pixels from one kernel column to the next.", low=1),
            Field("in_blocks", 12, "Input channel blocks that meet each output block.", low=1),
            Field("out_blocks", 12, "Output channel blocks, of cols channels each.", low=1),
            Field("two_planes", 1, "Weights are the sum of two int8 planes, each run over the same input."),
            _address("weights", "First word in the weight memory; see the manual for the order of what stands there."),
            Field("zp_in", 8, "Zero point of the input, fed as padding.", signed=True),
            Field("zp_out", 8, "Zero point that the requantiser adds.", signed=True),
            Field("table", 2, "0: none, 1: keep the table, 2: load a table first.", high=TableUse.LOAD),
            *_OUTPUT,
            Field("out_lane", 5, "Byte in the first output word at which the first channel goes; a multiple of lanes."),
            Field("residual", 1, "Add a residual operand to every result byte."),
            _address(
                "res_base",
                "First word of the residual operand, which has the output's shape; its channels start at byte 0.",
            ),
            _address("res_plane", "Step of the residual from one channel block to the next."),
            _row("res_row", "Step of the residual from one row to the next."),
            Field("res_shift", 6, "Right shift of the residual addition.", high=47, unit="bits"),
            Field("res_even", 1, "The residual addition rounds ties to even; else up."),
        ),
    ),
    InstructionSpec(
        Kind.VTABLE,
        0x40,
        Unit.VEC,
        "Load the vector unit's 256-byte table from the scratchpad.",
        (_address("a_base", "First word of the table."),),
    ),
    InstructionSpec(
        Kind.VCOPY,
        0x41,
        Unit.VEC,
        "Copy words, with nearest-neighbour enlargement, byte rotation and byte selection: output pixel (y, x) takes input "
        "pixel (y/up_h, x/up_w), so strides read by a_x and a_row.",
        (
            *_A_INPUT,
            Field("a_x", 8, "Step of A from one input pixel to the next.", unit="words"),
            *_VECTOR_OUTPUT,
            Field("up_h", 4, "Output rows made from one input row.", low=1),
            Field("up_w", 4, "Output pixels made from one input pixel.", low=1),
            Field("rotate", 5, "Result byte (i + rotate) mod word takes input byte i."),
            Field("first_byte", 5, "First byte that is written."),
            Field("byte_count", 6, "Bytes that are written.", low=1, high=32),
        ),
    ),
    InstructionSpec(
        Kind.VADD,
        0x42,
        Unit.VEC,
        "Quantised sum: clamp((a*m1 + b*m2 + c) * 2^-shift) for every byte.",
        (*_A_INPUT, *_B_INPUT, *_VECTOR_OUTPUT, *_AFFINE),
    ),
    InstructionSpec(
        Kind.VMUL,
        0x43,
        Unit.VEC,
        "Quantised product: clamp(((a-zp_a)*(b-zp_b)*m1 + c) * 2^-shift) for every byte; m2 must equal m1.",
        (
            *_A_INPUT,
            *_B_INPUT,
            *_VECTOR_OUTPUT,
            *_AFFINE,
            Field("zp_a", 8, "Zero point of A.", signed=True),
            Field("zp_b", 8, "Zero point of B.", signed=True),
        ),
    ),
    InstructionSpec(
        Kind.VMAX,
        0x44,
        Unit.VEC,
        "Largest byte of each window; input outside in_h x in_w does not count. a_base is the word of input row 0, column 0, modulo 2^20.",
        (*_A_INPUT, *_WINDOW, *_VECTOR_OUTPUT),
    ),
    InstructionSpec(
        Kind.VAVG,
        0x45,
        Unit.VEC,
        "Scaled sum of each window: clamp((sum*m1 + c) * 2^-shift); input outside in_h x in_w counts as zp_in; m2 must "
        "equal m1; the sum must fit 18 bits with its sign.",
        (
            *_A_INPUT,
            *_WINDOW,
            *_VECTOR_OUTPUT,
            *_AFFINE,
            Field("zp_in", 8, "Value of input outside the tensor.", signed=True),
        ),
    ),
)

BY_KIND: Mapping[Kind, InstructionSpec] = MappingProxyType({s.kind: s for s in INSTRUCTIONS})
BY_OPCODE: Mapping[int, InstructionSpec] = MappingProxyType({s.opcode: s for s in INSTRUCTIONS})


@dataclass(frozen=True)
class Instruction:
    """One instruction with every field of its spec in range. Make it with `make`, read fields with `[]`."""

    kind: Kind
    values: Mapping[str, int]

    @property
    def spec(self) -> InstructionSpec:
        """Its row of the table."""
        return BY_KIND[self.kind]

    @property
    def unit(self) -> Unit:
        """The unit that runs it."""
        return self.spec.unit

    def __getitem__(self, name: str) -> int:
        return self.values[name]

    def with_fields(self, **changes: int) -> Instruction:
        """A copy with some fields changed, checked anew."""
        values = {k: v for k, v in self.values.items() if k != "opcode"}
        return make(self.kind, **{**values, **changes})


def _check(spec: InstructionSpec, field: Field, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise EncodingError(f"{spec.kind}.{field.name} must be an integer, not {value!r}")
    if not field.minimum <= value <= field.maximum:
        raise EncodingError(f"{spec.kind}.{field.name} must be from {field.minimum} to {field.maximum}, not {value}")
    return value


def make(kind: Kind | str, **values: int) -> Instruction:
    """An instruction; fields left out take their defaults; unknown fields and values out of range are refused."""
    try:
        spec = BY_KIND[Kind(kind)]
    except ValueError:
        raise EncodingError(f"instruction must be one of {', '.join(Kind)}, not {kind!r}") from None
    for name in values:
        if name == "opcode":
            raise EncodingError(f"{spec.kind}.opcode follows from the instruction's name and cannot be set")
        spec.field(name)
    full = {f.name: _check(spec, f, values.get(f.name, f.default)) for f in spec.fields[1:]}
    return Instruction(spec.kind, MappingProxyType({"opcode": spec.opcode, **full}))


def encode(instruction: Instruction) -> bytes:
    """The 64 bytes of an instruction."""
    spec = instruction.spec
    word = 0
    for f in spec.fields:
        word |= (instruction[f.name] & ((1 << f.width) - 1)) << spec.offsets[f.name]
    return word.to_bytes(INSTRUCTION_BYTES, "little")


def decode(data: bytes) -> Instruction:
    """The instruction in 64 bytes; a bad opcode, an illegal field or a set bit past the last field is refused."""
    if len(data) != INSTRUCTION_BYTES:
        raise EncodingError(f"an instruction must be {INSTRUCTION_BYTES} bytes, not {len(data)}")
    word = int.from_bytes(data, "little")
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
    """The instruction of one line of text, as `disassemble` writes it; numbers may be decimal or 0x…; `#` starts a comment."""
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
