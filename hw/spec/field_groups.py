"""Groups of fields that several instructions share."""

from intloom.hw.spec.arith import CONSTANT_BITS, FACTOR_BITS, MAX_AFFINE_SHIFT
from intloom.hw.spec.fields import COORDINATE_BITS, DRAM_BITS, SCRATCH_BITS, Field


def address(name: str, doc: str) -> Field:
    """A scratchpad or weight memory address."""
    return Field(name, SCRATCH_BITS, doc, unit="words")


def extent(name: str, doc: str) -> Field:
    """A height or width, at least 1."""
    return Field(name, COORDINATE_BITS, doc, low=1, unit="pixels")


def coordinate(name: str, doc: str) -> Field:
    """A coordinate of the input, which padding makes negative."""
    return Field(name, COORDINATE_BITS + 1, doc, signed=True, unit="pixels")


def zero_point(name: str, doc: str) -> Field:
    """A zero point."""
    return Field(name, 8, doc, signed=True)


def row(name: str, doc: str) -> Field:
    """A step from row to row."""
    return Field(name, 16, doc, unit="words")


MOVE = (
    Field("dram", DRAM_BITS, "First word in memory, counted from the memory base register.", unit="words"),
    address("local", "First word in the scratchpad or weight memory."),
    Field("n0", SCRATCH_BITS, "Words in a contiguous run.", low=1, unit="words"),
    Field("n1", 16, "Runs in a plane.", low=1),
    Field("n2", 16, "Planes.", low=1),
    Field("dram_s1", DRAM_BITS, "Step in memory from run to run.", unit="words"),
    Field("dram_s2", DRAM_BITS, "Step in memory from plane to plane.", unit="words"),
    address("local_s1", "Step in local memory from run to run."),
    address("local_s2", "Step in local memory from plane to plane."),
)
"""Fields of LOAD and STORE."""

OUTPUT = (
    extent("out_h", "Output rows."),
    extent("out_w", "Output pixels in a row."),
    address("out_base", "First output word."),
    address("out_plane", "Step from one output channel block to the next."),
    row("out_row", "Step from one output row to the next."),
    Field("out_x", 4, "Step from one output pixel to the next.", low=1, unit="words"),
)
"""A result tile."""

VECTOR_OUTPUT = (
    *OUTPUT,
    Field("blocks", 12, "Channel blocks.", low=1),
    Field("table", 1, "Pass every result byte through the vector table."),
)
"""A result tile of the vector unit."""

CHANNEL_OUTPUT = (
    Field("out_h", 12, "Output rows.", low=1, unit="pixels"),
    extent("out_w", "Output pixels in a row."),
    *OUTPUT[2:],
    Field("blocks", 8, "Channel blocks.", low=1),
    Field("table", 1, "Pass every result byte through the vector table."),
)
"""A result tile whose channels are computed together."""

A_INPUT = (
    address("a_base", "First word of operand A."),
    address("a_plane", "Step of A from one channel block to the next."),
    row("a_row", "Step of A from one row to the next."),
)
"""Operand A."""

B_INPUT = (
    address("b_base", "First word of operand B."),
    address("b_plane", "Step of B from one channel block to the next."),
    row("b_row", "Step of B from one row to the next."),
)
"""Operand B."""

AFFINE = (
    Field("m1", FACTOR_BITS, "Factor of the first operand.", signed=True),
    Field("m2", FACTOR_BITS, "Factor of the second operand.", signed=True),
    Field("c", CONSTANT_BITS, "Constant added before the shift.", signed=True),
    Field("shift", 6, "Right shift.", high=MAX_AFFINE_SHIFT, unit="bits"),
    Field("even", 1, "Round ties to even; else up."),
)
"""Affine coefficients."""

WINDOW = (
    extent("in_h", "Rows of the input."),
    extent("in_w", "Pixels in an input row."),
    coordinate("iy0", "Input row under the window's top row at output row 0."),
    coordinate("ix0", "Input column under the window's left column at output column 0."),
    Field("kernel_h", 8, "Window height.", low=1),
    Field("kernel_w", 8, "Window width.", low=1),
    Field("stride_h", 4, "Input rows from one output row to the next.", low=1),
    Field("stride_w", 4, "Input pixels from one output pixel to the next.", low=1),
)
"""A sliding window and its input."""

KERNEL_INPUT = (
    extent("in_h", "Rows of the whole input."),
    extent("in_w", "Pixels in an input row."),
    coordinate("iy0", "Input row under the kernel's first row at output row 0."),
    coordinate("ix0", "Input column under the kernel's first column at output column 0."),
)
"""Size and position of a convolution's input."""

STRIDES = (
    Field("stride_h", 3, "Input rows from one output row to the next.", low=1, high=4),
    Field("stride_w", 3, "Input pixels from one output pixel to the next.", low=1, high=4),
)
"""Strides of a convolution."""
