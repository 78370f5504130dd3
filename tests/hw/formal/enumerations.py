"""Generators of instructions with all combinations of small field values, for each kind that a unit executes.

Addresses lie in the memories of `WIDE`, the hardware of the enumeration. `test_instructions.py` runs the instructions
and writes all pairs of bytes, all bytes and constants with extreme values to the words that are named here.
"""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np

from intloom.hw.spec.arith import INT8_MAX, INT8_MIN, Scale
from intloom.hw.spec.fields import SCRATCH_BITS, TableUse
from intloom.hw.spec.isa import BY_KIND, Instruction, Kind, make
from intloom.hw.spec.softmax import EXPONENTIAL_BYTES, LESS_BITS
from intloom.hw.spec.vector_depthwise import SHIFT_BITS, TAPS, constant_words, pack_depthwise
from intloom.sim.random_programs.words import words_of
from tests.sim.random_programs.extremes import (
    DEPTHWISE_END,
    LOW_SOURCE,
    LOW_TARGET,
    PLAIN,
    RESIDUAL,
    TABLE,
    WIDE,
)

Fields = dict[str, int]
INPUT, OTHER, OUTPUT = 1000, 5000, 100_000
"""First words of operands and results."""
PAIRS = 60_000
"""First word of all pairs of bytes; the second bytes follow after `PAIR_WORDS`."""
PAIR_WORDS = 1 << 14
BYTES = 95_000
"""First word of all 256 bytes in order."""
LIMITS, LIMIT_STEP = 10_000, 96
"""First word of the constants of `limit_records`, and the step from one record to the next."""


def every(**fields: Any) -> Iterator[Fields]:
    """All combinations of the values of these fields."""
    for values in product(*fields.values()):
        yield dict(zip(fields, values, strict=True))


def defined(fields: Iterator[Fields], kind: Kind) -> Iterator[Fields]:
    """Those that write no word twice: the order of an instruction's results is not defined."""
    for values in fields:
        written = words_of(make(kind, **values), WIDE).written
        if len(np.unique(written)) == len(written):
            yield values


SMALL, FEW, STEPS = (1, 2), (1, 2, 3), (0, 1, 2)


def moves(**more: Any) -> Iterator[Fields]:
    """Runs and planes from 1 to 3; steps from 0 to 2 on both sides; any target."""
    counts = {"n0": FEW, "n1": FEW, "n2": FEW}
    steps = {"dram_s1": STEPS, "dram_s2": STEPS, "local_s1": STEPS, "local_s2": STEPS}
    return every(**counts, **steps, **more)


def loads() -> Iterator[Instruction]:
    """LOAD: `moves`, to both memories; the first word's position in its burst varies with them."""
    for number, fields in enumerate(moves(target=(0, 1))):
        local = OUTPUT if fields["target"] == 0 else WIDE.weight_words - 5
        yield make(Kind.LOAD, dram=LOW_SOURCE + 253 + number % 5, local=local + number % 3, **fields)


def stores() -> Iterator[Instruction]:
    """STORE: `moves`."""
    for number, fields in enumerate(moves()):
        yield make(Kind.STORE, dram=LOW_TARGET + 253 + number % 5, local=INPUT + number % 3, **fields)


_TILE = {"out_base": (OUTPUT,), "out_row": (9,), "out_plane": (40,)}
_SMALL_TILE = {"out_h": SMALL, "out_w": SMALL, "blocks": SMALL}
_OUTPUT_STEPS = {"out_x": SMALL, "out_row": range(5), "out_plane": range(0, 9, 2), "out_base": (OUTPUT,)}


def copies() -> Iterator[Instruction]:
    """VCOPY: shapes to 3 x 3 with upsampling to 3; every rotation and byte selection; steps from 0 to 2."""
    a = {"a_base": (INPUT,), "a_row": (7,), "a_plane": (50,), "a_x": SMALL}
    yield from (make(Kind.VCOPY, byte_count=4, **f) for f in every(
        out_h=FEW, out_w=FEW, blocks=SMALL, up_h=FEW, up_w=FEW, out_x=(1,), **a, **_TILE))  # fmt: skip
    for f in every(rotate=range(4), first_byte=range(4), byte_count=range(1, 5), table=(0, 1), a_x=(1,), out_w=SMALL):
        if f["first_byte"] + f["byte_count"] <= WIDE.word_bytes:
            yield make(Kind.VCOPY, a_base=INPUT, out_base=OUTPUT, **f)
    steps = every(
        **_SMALL_TILE, **_OUTPUT_STEPS, a_row=STEPS, a_plane=STEPS, a_x=STEPS, a_base=(INPUT,), byte_count=(4,)
    )
    yield from (make(Kind.VCOPY, **f) for f in defined(steps, Kind.VCOPY))


def _pairs(kind: Kind, factors: dict[str, Any]) -> Iterator[Instruction]:
    """Shapes to 3 x 3; steps from 0 to 2; tables, roundings and shifts; then all pairs of bytes."""
    ab = {"a_base": (INPUT,), "b_base": (OTHER,)}
    steps = {"a_row": STEPS, "a_plane": STEPS, "b_row": STEPS, "b_plane": STEPS}
    scale = {"m1": (3,), "m2": (3,), "c": (5,), "shift": (2,)}
    shapes = {"out_h": FEW, "out_w": FEW, "blocks": FEW, "table": (0, 1), "even": (0, 1), "out_x": SMALL}
    yield from (make(kind, **f) for f in every(**shapes, **ab, **scale, **dict.fromkeys(steps, (5,)), **_TILE))
    yield from (make(kind, **f) for f in every(**_SMALL_TILE, **ab, **steps, **scale, **_TILE, out_x=(1,)))
    outputs = every(**_SMALL_TILE, **_OUTPUT_STEPS, **ab, **scale, a_row=(2,), a_plane=(7,), b_row=(3,), b_plane=(8,))
    yield from (make(kind, **f) for f in defined(outputs, kind))
    square = 128
    whole = {"out_h": square, "out_w": square, "out_base": OUTPUT, "out_row": square}
    a = {"a_base": PAIRS, "a_row": square, "b_base": PAIRS + PAIR_WORDS, "b_row": square}
    yield from (make(kind, **whole, **a, **f) for f in every(**factors))


def sums() -> Iterator[Instruction]:
    """VADD: see `_pairs`; all pairs of bytes with 8 sets of coefficients."""
    factors = {"m1": (1, -3), "m2": (2,), "c": (-3, 6), "shift": (2,), "even": (0, 1)}
    return _pairs(Kind.VADD, factors)


def products() -> Iterator[Instruction]:
    """VMUL: see `_pairs`; all pairs of bytes with 8 sets of coefficients, with the extreme zero points."""
    factors = {
        "m1": (5,),
        "m2": (5,),
        "shift": (9,),
        "c": (256,),
        "even": (0, 1),
        "zp_a": (-128, 127),
        "zp_b": (-128, 3),
    }
    return _pairs(Kind.VMUL, factors)


def _windows(kind: Kind, **more: Any) -> Iterator[Instruction]:
    """Kernels to 4 x 3, strides to 2, inputs to 3 rows and 2 columns that begin at -1 to 1; then all pairs of bytes.

    Windows of 2 to 3 words along one axis slide; those at stride 2 or with two axes do not.
    """
    kernels = {"kernel_h": (1, 2, 3, 4), "kernel_w": FEW, "stride_h": SMALL, "stride_w": SMALL}
    inputs = {"in_h": FEW, "in_w": SMALL, "iy0": (-1, 0, 1), "ix0": (-1, 0)}
    shape = {"out_h": SMALL, "out_w": SMALL, "blocks": (2,), "out_x": (1,)}
    fixed = {"a_base": (INPUT,), "a_row": (3,), "a_plane": (20,)}
    yield from (make(kind, **f) for f in every(**kernels, **inputs, **shape, **fixed, **_TILE, **more))
    steps = {"a_row": STEPS, "a_plane": STEPS, "kernel_h": SMALL, "kernel_w": SMALL, "table": (0, 1)}
    origin = {"in_h": (3,), "in_w": (3,), "iy0": (-1,), "ix0": (-1,), "a_base": (INPUT,)}
    yield from (make(kind, **f) for f in every(**_SMALL_TILE, **steps, **origin, **_TILE, **more))
    # A block for each row of a square: its two input rows are the first and the second bytes of its pairs.
    square = 128
    whole = {"out_w": square, "in_w": square, "blocks": square, "a_plane": square, "out_plane": square}
    a = {"out_base": OUTPUT, "a_base": PAIRS, "a_row": PAIR_WORDS, "kernel_h": 2, "in_h": 2}
    yield from (make(kind, **whole, **a, **f) for f in every(**more))


def maxima() -> Iterator[Instruction]:
    """VMAX: see `_windows`."""
    return _windows(Kind.VMAX)


def averages() -> Iterator[Instruction]:
    """VAVG: see `_windows`."""
    return _windows(Kind.VAVG, m1=(7,), m2=(7,), c=(3,), shift=(4,), even=(0,), zp_in=(-128,))


def tables() -> Iterator[Instruction]:
    """VTABLE from 16 words on, each followed by a copy of all 256 bytes through the table."""
    copy = make(Kind.VCOPY, a_base=BYTES, out_base=OUTPUT, out_w=64, a_x=1, byte_count=4, table=1)
    for base in range(INPUT, INPUT + 16):
        yield from (make(Kind.VTABLE, a_base=base), copy)


_SOFTMAX = {"a_base": INPUT, "a_row": 5, "a_plane": 30, "out_base": OUTPUT, "out_row": 9, "out_plane": 40}


def exponentials() -> Iterator[Instruction]:
    """VEXP: each part from 8 words on, followed by softmaxes that use all entries."""
    for part, base in product(range(EXPONENTIAL_BYTES), range(INPUT, INPUT + 8)):
        yield make(Kind.VEXP, part=part, a_base=base)
        for row in range(4):
            spread = {"a_base": BYTES + 16 * row, "blocks": 16, "a_plane": 1, "last_bytes": 4, "out_plane": 1}
            yield make(Kind.VSOFTMAX, zp_out=-128, **{**_SOFTMAX, **spread})


def softmaxes() -> Iterator[Instruction]:
    """VSOFTMAX: shapes to 2 x 2, 1 to 3 blocks, every number of bytes in the last one and every `less`."""
    yield from exponential_parts()
    last = {"last_bytes": range(1, 5), "less": range(1 << LESS_BITS), "table": (0, 1), "zp_out": (-128, 0, 127)}
    for f in every(out_h=SMALL, out_w=SMALL, blocks=FEW, **last):
        yield make(Kind.VSOFTMAX, **_SOFTMAX, **f)


def normalizations() -> Iterator[Instruction]:
    """VNORM: shapes to 2 x 2, 1 to 3 blocks, every number of bytes in the last one, with and without center."""
    last = {"last_bytes": range(1, 5), "center": (0, 1), "table": (0, 1), "zp_in": (-128, 0), "epsilon": (0, 1 << 30)}
    for f in every(out_h=SMALL, out_w=SMALL, blocks=FEW, **last):
        yield make(Kind.VNORM, b_base=OTHER, **_SOFTMAX, **f)


def exponential_parts() -> Iterator[Instruction]:
    """VEXP: the parts of one table of exponentials."""
    for part in range(EXPONENTIAL_BYTES):
        yield make(Kind.VEXP, part=part, a_base=INPUT + 7 * part)


_CONV = {
    "in_base": INPUT, "in_row": 5, "in_plane": 60, "out_base": OUTPUT, "out_row": 9, "out_plane": 40, "zp_in": 3,
    "weights": PLAIN, "res_base": OTHER, "res_row": 4, "res_plane": 20,
}  # fmt: skip


def convolutions() -> Iterator[Instruction]:
    """CONV: kernels, strides, dilations, inputs of 1 or 2 rows and columns from -1 on, and outputs to 2 x 2.

    Then blocks to 3 x 3 with every option and outputs to 3 x 2; packed words.
    """
    kernel = {"kernel_h": SMALL, "kernel_w": SMALL, "stride_h": SMALL, "stride_w": SMALL}
    around = {"iy0": (-1, 0, 1), "ix0": (-1, 0, 1), "in_h": SMALL, "in_w": SMALL}
    output = {"out_h": SMALL, "out_w": SMALL}
    yield from (make(Kind.CONV, **_CONV, **f) for f in every(**kernel, **around, **output))
    dilated = {"dilation_h": FEW, "dilation_w": FEW, "kernel_h": (2,), "kernel_w": (2,), "in_h": (3,), "in_w": (3,)}
    origin = {"iy0": (-1, 0), "ix0": (-1, 0), "in_ring": (0, 10), "in_row_off": (0, 5)}
    yield from (make(Kind.CONV, **_CONV, **f) for f in every(**dilated, **origin))
    blocks = {
        "in_blocks": FEW,
        "out_blocks": FEW,
        "in_block_step": (0, 60),
        "in_h": (2,),
        "in_w": (2,),
        "out_w": SMALL,
        "out_h": (3,),
    }
    options = {"weight_zero_points": (0, 1), "subtract_zp_in": (0, 1), "zp_out": (-128, 5)}
    for extra in ({}, {"residual": 1, "weights": RESIDUAL, "res_even": 1}, {"table": TableUse.LOAD, "weights": TABLE}):
        fixed = {name: (value,) for name, value in {**_CONV, **extra}.items()}
        yield from (make(Kind.CONV, **f) for f in every(**{**fixed, **blocks, **options}))
    yield from (make(Kind.CONV, mode=1, **_CONV, **f) for f in every(**kernel, **around, **output))


_KERNEL_ROWS = BY_KIND[Kind.VDEPTHWISE].field("kernel_h").maximum


def limit_records() -> list[bytes]:
    """Constants of a VDEPTHWISE with the most kernel rows: every channel has other limits of weights and bias.

    Four records for each limit of a scale pair all limits of the bias with all of the weights.
    """
    largest, bits = (1 << WIDE.mantissa_bits) - 1, WIDE.mantissa_bits
    limits = [(largest, 0), (1 << bits - 1, 0), (largest, bits + 5), (largest, (1 << SHIFT_BITS) - 1), (0, 0)]
    biases = [-1 << 31, (1 << 31) - 1, 0, -1]
    weights = [[INT8_MIN, INT8_MAX, (INT8_MIN, INT8_MAX)[tap % 2], 0] for tap in range(TAPS * _KERNEL_ROWS)]
    rows = [weights[first : first + TAPS] for first in range(0, len(weights), TAPS)]
    return [
        pack_depthwise(rows, biases[turn:] + biases[:turn], [Scale(*scale)] * len(biases), bits)
        for scale, turn in product(limits, range(len(biases)))
    ]


def depthwise() -> Iterator[Instruction]:
    """VDEPTHWISE: 1 to 3 kernel rows, outputs to 2 x 3, strides to 2, inputs to 2 x 2 that begin at -1 to 1.

    Then every origin around an input of 3 x 2; rings to 4 words with every step, first offset and stride; steps of the
    output; zero points and constants at their limits with 1 to 15 kernel rows; all pairs of bytes.
    """
    kernel = {"kernel_h": FEW, "stride_h": SMALL, "stride_w": SMALL, "out_h": SMALL, "out_w": FEW}
    around = {"in_h": SMALL, "in_w": SMALL, "iy0": (-1, 0, 1), "ix0": (-1, 0, 1)}
    fixed = {"a_base": (INPUT,), "a_row": (5,), "zp_in": (3,), "out_base": (OUTPUT,), "out_row": (9,)}
    yield from (_depthwise(**f) for f in every(**kernel, **around, **fixed))
    origin = {"iy0": range(-3, 4), "ix0": range(-4, 4), "in_h": (3,), "in_w": (2,), "table": (0, 1)}
    shape = {"kernel_h": (2,), "out_h": (2,), "out_w": (2,)}
    for f in every(**origin, **shape, **fixed):
        # Input row 0 begins at `a_base`: the offset of a negative row wraps in the address space.
        yield _depthwise(**f, a_row_off=f["iy0"] * f["a_row"] % (1 << SCRATCH_BITS))
    yield from _depthwise_rings()
    same = {"a_base": (INPUT,), "a_row": (5,), "in_h": (9,), "in_w": (9,), "kernel_h": (2,)}
    same["kernel_w"] = range(1, TAPS + 1)
    steps = {"out_x": SMALL, "out_row": range(5), "out_base": (OUTPUT,), "stride_h": (1, 4), "stride_w": (1, 4)}
    shapes = every(out_h=SMALL, out_w=SMALL, **steps, **same)
    yield from (_depthwise(**f) for f in defined(shapes, Kind.VDEPTHWISE))
    yield from _depthwise_limits()
    # Two rows, the first and the second bytes of half of all pairs: every pair has all kernel columns in turn.
    half = PAIR_WORDS // 2
    whole = {
        "out_w": half + TAPS - 1,
        "in_w": half,
        "ix0": 1 - TAPS,
        "kernel_w": TAPS,
        "in_h": 2,
        "kernel_h": 2,
        "a_row": PAIR_WORDS,
        "out_base": OUTPUT,
    }
    for first, table in product((0, half), (0, 1)):
        yield _depthwise(a_base=PAIRS + first, table=table, **whole)


def _depthwise(end: int = DEPTHWISE_END, **fields: int) -> Instruction:
    """The instruction, of three columns if no other number is given, with the constants that end at this word."""
    fields = {"kernel_w": 3} | fields
    return make(Kind.VDEPTHWISE, b_base=end - constant_words(fields["kernel_h"], fields["kernel_w"]), **fields)


def _depthwise_rings() -> Iterator[Instruction]:
    """Rings from 1 to 4 words and none, 1 to 3 kernel rows, 3 output rows at every stride: any row can wrap."""
    rows = {"kernel_h": FEW, "stride_h": (1, 2, 3, 4), "iy0": (-1, 0)}
    for ring in range(5):
        inside = {"a_row": range(ring + 1) if ring else STEPS, "a_row_off": range(ring or 2)}
        for f in every(**rows, **inside):
            yield _depthwise(**f, a_ring=ring, a_base=INPUT, in_h=14, in_w=3, out_h=3, out_base=OUTPUT, out_row=1)


def _depthwise_limits() -> Iterator[Instruction]:
    """The window of the first pixel lies outside the input, that of the last one inside."""
    shape = {"ix0": -8, "stride_w": 4, "out_w": 3, "in_w": TAPS, "in_h": 15, "a_base": INPUT, "a_row": TAPS}
    shape["kernel_w"] = TAPS
    zero_points = {"zp_in": (INT8_MIN, INT8_MAX), "zp_out": (INT8_MIN, INT8_MAX)}
    for f in every(**zero_points, kernel_h=range(1, _KERNEL_ROWS + 1), table=(0, 1)):
        yield _depthwise(**f, **shape, out_base=OUTPUT)
    ends = [LIMITS + LIMIT_STEP * (number + 1) for number in range(len(limit_records()))]
    for f in every(end=ends, **zero_points, kernel_h=(1, 2, 3, _KERNEL_ROWS)):
        yield _depthwise(**f, **shape, out_base=OUTPUT)
    for first in (0, WIDE.scratch_words - constant_words(3, TAPS)):
        yield make(Kind.VDEPTHWISE, b_base=first, kernel_h=3, **shape, out_base=OUTPUT)


KINDS: dict[Kind, Callable[[], Iterator[Instruction]]] = {
    Kind.LOAD: loads,
    Kind.STORE: stores,
    Kind.CONV: convolutions,
    Kind.VTABLE: tables,
    Kind.VCOPY: copies,
    Kind.VADD: sums,
    Kind.VMUL: products,
    Kind.VMAX: maxima,
    Kind.VAVG: averages,
    Kind.VEXP: exponentials,
    Kind.VSOFTMAX: softmaxes,
    Kind.VNORM: normalizations,
    Kind.VDEPTHWISE: depthwise,
}
"""The generator of each kind."""
