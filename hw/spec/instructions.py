"""The instruction table itself: every instruction, its opcode, unit and fields, written exactly once."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from intloom.hw.spec.fields import (
    COORDINATE_BITS,
    DRAM_BITS,
    SCRATCH_BITS,
    Field,
    InstructionSpec,
    Kind,
    TableUse,
    Unit,
)


def _address(name: str, doc: str) -> Field:
    return Field(name, SCRATCH_BITS, doc, unit="words")


def _extent(name: str, doc: str) -> Field:
    return Field(name, COORDINATE_BITS, doc, low=1, unit="pixels")


def _row(name: str, doc: str) -> Field:
    return Field(name, 16, doc, unit="words")


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
        "First instruction of every program. The hardware refuses another version or fingerprint with cause "
        "WRONG_PROGRAM.",
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
        "Convolve one tile: for each output block, for each strip of pixels, for each plane, kernel row, kernel column "
        "and input block, one weight tile meets the strip; then the sums are requantised and written. Input words "
        "outside in_h x in_w read as zp_in.",
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
        "Copy words, with nearest-neighbour enlargement, byte rotation and byte selection: output pixel (y, x) takes "
        "input pixel (y/up_h, x/up_w), so strides read by a_x and a_row.",
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
        "Largest byte of each window; input outside in_h x in_w does not count. a_base is the word of input row 0, "
        "column 0, modulo 2^20.",
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
