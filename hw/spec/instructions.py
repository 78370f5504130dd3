"""The instruction table: opcode, unit, fields and access pattern of every instruction."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType

from intloom.common.errors import EncodingError
from intloom.hw.spec.arith import MAX_AFFINE_SHIFT
from intloom.hw.spec.field_groups import (
    A_INPUT,
    AFFINE,
    B_INPUT,
    CHANNEL_OUTPUT,
    KERNEL_INPUT,
    MOVE,
    OUTPUT,
    STRIDES,
    VECTOR_OUTPUT,
    WINDOW,
    address,
    row,
    zero_point,
)
from intloom.hw.spec.fields import (
    CHECK_LSB,
    HEADER,
    WEIGHT_ADDRESS_BITS,
    ConvMode,
    Field,
    TableUse,
    Unit,
)
from intloom.hw.spec.norm import EPSILON_BITS, LARGEST_LINE, LINE_BITS
from intloom.hw.spec.softmax import EXPONENTIAL_BYTES, LESS_BITS


class Kind(StrEnum):
    """Names of the instructions."""

    # Enum hashes names in Python, and dictionaries of instructions are read for every one.
    __hash__ = str.__hash__

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
    VEXP = "VEXP"
    VSOFTMAX = "VSOFTMAX"
    VNORM = "VNORM"
    VDEPTHWISE = "VDEPTHWISE"


class AccessPattern(StrEnum):
    """Which words an instruction reads and writes; its footprint, cost and decoding follow from it."""

    NONE = "none"
    MOVE = "move"
    """Runs of words between DRAM and local memory."""
    CONV = "conv"
    """Input windows, weights and an output tile."""
    TABLE = "table"
    """One table."""
    COPY = "copy"
    """Operand A, read with strides and upsampling, and an output tile."""
    ELEMENTWISE = "elementwise"
    """Operands A and B and an output tile of one shape."""
    WINDOW = "window"
    """Windows of operand A and an output tile."""
    CHANNELS = "channels"
    """All channel blocks of operand A's pixels, and an output tile of one shape."""
    NORM = "norm"
    """The same, and constants of every channel."""
    DEPTHWISE = "depthwise"
    """Windows of one channel block in a buffer that may be a ring, the block's constants, and an output tile."""


@dataclass(frozen=True)
class InstructionSpec:
    """One row of the table: name, opcode, unit, fields after the header, and access pattern."""

    kind: Kind
    opcode: int
    unit: Unit
    doc: str
    body: tuple[Field, ...]
    pattern: AccessPattern = AccessPattern.NONE
    requires: str = ""
    """The hardware parameter that enables the instruction; empty: always available."""
    one_factor: bool = False
    """m2 must equal m1."""

    @property
    def fields(self) -> tuple[Field, ...]:
        """Header and body, from bit 0 upwards."""
        return HEADER + self.body

    @cached_property
    def offsets(self) -> Mapping[str, int]:
        """Bit number of each field's lowest bit."""
        lowest: dict[str, int] = {}
        at = 0
        for f in self.fields:
            lowest[f.name] = at
            at += f.width
        if at > CHECK_LSB:
            raise EncodingError(f"{self.kind} must fit {CHECK_LSB} bits, not {at}")
        return MappingProxyType(lowest)

    def field(self, name: str) -> Field:
        """The field called `name`."""
        for f in self.fields:
            if f.name == name:
                return f
        raise EncodingError(f"{self.kind} has no field {name!r}: it has {', '.join(f.name for f in self.fields)}")


INSTRUCTIONS: tuple[InstructionSpec, ...] = (
    InstructionSpec(
        Kind.BEGIN,
        0x01,
        Unit.CONTROL,
        "First instruction of every program. Another version or fingerprint stops the accelerator with cause "
        "WRONG_PROGRAM.",
        (
            Field("version", 16, "Instruction set version."),
            Field("fingerprint", 32, "Fingerprint of the hardware parameters that the program was compiled for."),
        ),
    ),
    InstructionSpec(
        Kind.END,
        0x02,
        Unit.CONTROL,
        "Last instruction. The program is done when its waits are satisfied and all queues and units are empty.",
        (Field("crc", 32, "CRC-32C of all bits of the program before this field; see Program check."),),
    ),
    InstructionSpec(
        Kind.LOAD,
        0x10,
        Unit.LOAD,
        "Copy n2 planes of n1 runs of n0 words from memory. Weight memory addresses wrap at its end. See Coded words "
        "and Check of constants.",
        (
            Field("target", 1, "0: scratchpad, 1: weight memory."),
            *MOVE,
            Field(
                "coded",
                16,
                "Words in memory of each run, which are the code of its n0 words. 0: they are the n0 words.",
                unit="words",
                requires="word_code",
            ),
            Field(
                "crc",
                32,
                "CRC-32 of all words that are read from memory, see Check of constants. 0: they are not checked.",
                requires="constant_check",
            ),
        ),
        pattern=AccessPattern.MOVE,
    ),
    InstructionSpec(
        Kind.STORE,
        0x20,
        Unit.STORE,
        "Copy n2 planes of n1 runs of n0 words to memory.",
        MOVE,
        pattern=AccessPattern.MOVE,
    ),
    InstructionSpec(
        Kind.CONV,
        0x30,
        Unit.MAC,
        "Convolve one tile: loop over output blocks, strips of pixels, kernel rows, kernel columns and input "
        "blocks. Each step multiplies a strip by one weight tile. After the last step of a strip, its sums are "
        "requantized and written. Input words outside in_h x in_w read as zp_in.",
        (
            address("in_base", "First word of the input buffer."),
            address("in_row_off", "Offset in a plane of input row iy0, modulo in_ring when that is not 0."),
            address("in_ring", "Words after which row offsets wrap to 0; 0: they never wrap."),
            address("in_plane", "Step from one input channel block to the next."),
            row("in_row", "Step from one input row to the next."),
            address(
                "in_block_step",
                "Added to in_base after every output block: 0 for a full, in_plane for a depthwise convolution.",
            ),
            *KERNEL_INPUT,
            Field(
                "mode",
                2,
                "0: array rows are input channels. 1: packed; input words hold rows/4 pixels of 4 channels, and "
                "kernel_w counts groups of rows/4 pixels.",
                high=ConvMode.PACKED,
            ),
            Field("kernel_h", 4, "Kernel rows.", low=1),
            Field("kernel_w", 4, "Kernel columns.", low=1),
            *STRIDES,
            Field("dilation_h", 4, "Input rows from one kernel row to the next.", low=1),
            Field("dilation_w", 4, "Input pixels from one kernel column to the next.", low=1),
            Field("in_blocks", 12, "Input channel blocks that contribute to each output block.", low=1),
            Field("out_blocks", 12, "Output channel blocks, of cols channels each.", low=1),
            Field(
                "weight_zero_points",
                1,
                "The constants hold a zero point for each output channel, which is subtracted from its weights.",
            ),
            Field(
                "weights",
                WEIGHT_ADDRESS_BITS,
                "First word of the constants in the weight memory; see Constants of CONV.",
                unit="words",
            ),
            zero_point("zp_in", "Zero point of the input, the value of padding."),
            Field(
                "subtract_zp_in",
                1,
                "Subtract zp_in times the sum of its weights from each sum. 0: the bias contains this product.",
                requires="weight_sums",
            ),
            zero_point("zp_out", "Zero point that the requantizer adds."),
            Field("table", 2, "0: no table, 1: use the loaded table, 2: load a table first.", high=TableUse.LOAD),
            *OUTPUT,
            Field("out_lane", 5, "Byte of the first output word for the first channel; a multiple of lanes."),
            Field("residual", 1, "Add a residual operand to every result byte."),
            address(
                "res_base",
                "First word of the residual operand, which has the output's shape; its channels start at byte 0.",
            ),
            address("res_plane", "Step of the residual from one channel block to the next."),
            row("res_row", "Step of the residual from one row to the next."),
            Field("res_shift", 6, "Right shift of the residual addition.", high=MAX_AFFINE_SHIFT, unit="bits"),
            Field("res_even", 1, "The residual addition rounds ties to even; else up."),
            Field(
                "continue_sums",
                1,
                "Start from the sums of the CONV before, of as many pixels: both have one output block and one strip.",
            ),
        ),
        pattern=AccessPattern.CONV,
    ),
    InstructionSpec(
        Kind.VTABLE,
        0x40,
        Unit.VEC,
        "Load the vector unit's 256-byte table from the scratchpad.",
        (address("a_base", "First word of the table."),),
        pattern=AccessPattern.TABLE,
    ),
    InstructionSpec(
        Kind.VCOPY,
        0x41,
        Unit.VEC,
        "Copy words, with nearest-neighbor upsampling, byte rotation and byte selection: output pixel (y, x) takes "
        "input pixel (y/up_h, x/up_w), so a_x and a_row give strided reads.",
        (
            *A_INPUT,
            Field("a_x", 8, "Step of A from one input pixel to the next.", unit="words"),
            *VECTOR_OUTPUT,
            Field("up_h", 4, "Vertical upsampling factor.", low=1),
            Field("up_w", 4, "Horizontal upsampling factor.", low=1),
            Field("rotate", 5, "Result byte (i + rotate) mod word takes input byte i."),
            Field("first_byte", 5, "First byte that is written."),
            Field("byte_count", 6, "Bytes that are written.", low=1, high=32),
        ),
        pattern=AccessPattern.COPY,
    ),
    InstructionSpec(
        Kind.VADD,
        0x42,
        Unit.VEC,
        "Quantized sum: clamp((a*m1 + b*m2 + c) * 2^-shift) for every byte.",
        (*A_INPUT, *B_INPUT, *VECTOR_OUTPUT, *AFFINE),
        pattern=AccessPattern.ELEMENTWISE,
    ),
    InstructionSpec(
        Kind.VMUL,
        0x43,
        Unit.VEC,
        "Quantized product: clamp(((a-zp_a)*(b-zp_b)*m1 + c) * 2^-shift) for every byte; m2 must equal m1.",
        (
            *A_INPUT,
            *B_INPUT,
            *VECTOR_OUTPUT,
            *AFFINE,
            zero_point("zp_a", "Zero point of A."),
            zero_point("zp_b", "Zero point of B."),
        ),
        pattern=AccessPattern.ELEMENTWISE,
        requires="vector_multiply",
        one_factor=True,
    ),
    InstructionSpec(
        Kind.VMAX,
        0x44,
        Unit.VEC,
        "Largest byte of each window; input outside in_h x in_w is ignored. a_base is the word of input row 0, "
        "column 0, modulo 2^20.",
        (*A_INPUT, *WINDOW, *VECTOR_OUTPUT),
        pattern=AccessPattern.WINDOW,
    ),
    InstructionSpec(
        Kind.VAVG,
        0x45,
        Unit.VEC,
        "Scaled sum of each window: clamp((sum*m1 + c) * 2^-shift); input outside in_h x in_w counts as zp_in; m2 must "
        "equal m1; the sum must fit 18 bits with its sign.",
        (
            *A_INPUT,
            *WINDOW,
            *VECTOR_OUTPUT,
            *AFFINE,
            zero_point("zp_in", "Value of input outside the tensor."),
        ),
        pattern=AccessPattern.WINDOW,
        requires="vector_average",
        one_factor=True,
    ),
    InstructionSpec(
        Kind.VEXP,
        0x46,
        Unit.VEC,
        "Load one byte of each of the 256 exponentials of VSOFTMAX from the scratchpad.",
        (
            address("a_base", "First word of the bytes."),
            Field("part", 2, "Which byte of an exponential, from the lowest on.", high=EXPONENTIAL_BYTES - 1),
        ),
        pattern=AccessPattern.TABLE,
        requires="vector_softmax",
    ),
    InstructionSpec(
        Kind.VSOFTMAX,
        0x47,
        Unit.VEC,
        "Softmax over the channels of each pixel: with e = exponential[255 + x - maximum] and s the sum of all e, at "
        "most 2^32 - 1, the result is clamp(floor((e*(256-less) + floor(s/2)) / s) + zp_out + 128) - 128, and 127 if s "
        "is 0. The clamp is from 0 to 255. Bytes beyond the channels count as e = 0.",
        (
            *A_INPUT,
            *CHANNEL_OUTPUT,
            Field("last_bytes", 6, "Channels in the last block.", low=1, high=32),
            Field("less", LESS_BITS, "256 minus the result that stands for 1."),
            zero_point("zp_out", "Zero point of the result."),
        ),
        pattern=AccessPattern.CHANNELS,
        requires="vector_softmax",
    ),
    InstructionSpec(
        Kind.VNORM,
        0x49,
        Unit.VEC,
        "Layer normalization over the channels of each pixel, or RMS normalization without center. See Operation of "
        "VNORM.",
        (
            *A_INPUT,
            *CHANNEL_OUTPUT[:1],
            Field("out_w", LINE_BITS, "Output pixels in a row.", low=1, high=LARGEST_LINE, unit="pixels"),
            *CHANNEL_OUTPUT[2:],
            address("b_base", "First word of the constants."),
            Field("last_bytes", 6, "Channels in the last block.", low=1, high=32),
            Field("center", 1, "Subtract the mean; 0: the mean counts as 0."),
            zero_point("zp_in", "Zero point of the input."),
            Field("epsilon", EPSILON_BITS, "Added to 256 times the variance of the sum of channels."),
        ),
        pattern=AccessPattern.NORM,
        requires="vector_norm",
    ),
    InstructionSpec(
        Kind.VDEPTHWISE,
        0x48,
        Unit.VEC,
        "Depthwise convolution of one channel block with a kernel of up to five columns. Sums are requantized as those "
        "of CONV. Input outside in_h x in_w reads as zp_in. See Constants of VDEPTHWISE.",
        (
            address("a_base", "First word of the input buffer."),
            address("a_row_off", "Offset in the buffer of input row iy0, modulo a_ring when that is not 0."),
            address("a_ring", "Words after which row offsets wrap to 0; 0: they never wrap."),
            row("a_row", "Step from one input row to the next."),
            *KERNEL_INPUT,
            Field("kernel_h", 4, "Kernel rows.", low=1),
            Field("kernel_w", 3, "Kernel columns.", low=1, high=5),
            *STRIDES,
            address("b_base", "First word of the constants."),
            zero_point("zp_in", "Zero point of the input, the value of padding."),
            zero_point("zp_out", "Zero point that the requantizer adds."),
            *OUTPUT[:3],
            *OUTPUT[4:],
            Field("table", 1, "Pass every result byte through the vector table."),
        ),
        pattern=AccessPattern.DEPTHWISE,
        requires="vector_depthwise",
    ),
)

BY_KIND: Mapping[Kind, InstructionSpec] = MappingProxyType({s.kind: s for s in INSTRUCTIONS})
BY_OPCODE: Mapping[int, InstructionSpec] = MappingProxyType({s.opcode: s for s in INSTRUCTIONS})
