"""The words that an instruction reads and writes, derived from its fields."""

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from intloom.hw.spec.conv_stream import conv_stream
from intloom.hw.spec.isa import SCRATCH_BITS, AccessPattern, ConvMode, Fields, Instruction, Kind, LoadTarget
from intloom.hw.spec.norm import CONSTANT_WORDS
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.vector_depthwise import constant_words

ADDRESS_SPACE = 1 << SCRATCH_BITS
"""Local addresses are computed modulo this."""


class Memory(IntEnum):
    """The three memories."""

    # Enum hashes names in Python, and dictionaries of memories are read for every access.
    __hash__ = int.__hash__

    DRAM = 0
    SCRATCH = 1
    WEIGHT = 2


class Access(NamedTuple):
    """Words of one memory: all sums of `base` and a multiple of each step; `dims` are (count, step), outer first."""

    memory: Memory
    write: bool
    base: int
    dims: tuple[tuple[int, int], ...]

    @property
    def last(self) -> int:
        """The highest word."""
        last = self.base
        for count, step in self.dims:
            last += (count - 1) * step
        return last


def addresses(access: Access) -> NDArray[np.int64]:
    """All words of an access in the order of a move."""
    words = np.asarray(access.base, np.int64)
    for count, step in access.dims:
        words = words[..., None] + np.arange(count, dtype=np.int64) * step
    return words.reshape(-1) if access.memory is Memory.DRAM else words.reshape(-1) % ADDRESS_SPACE


def view(array: NDArray[np.int32], access: Access, rows: int = 0) -> NDArray[np.int32]:
    """The words of an access in an array of its memory, without a copy; the access must lie inside.

    With `rows`, the array has a row for each of several units, and the view has the first rows as its first axis.
    """
    # The strides are the access's own, and a step of 0 repeats a word.
    shape, strides = [n for n, _ in access.dims], [s * 4 for _, s in access.dims]
    if rows:
        shape, strides = [rows, *shape], [array.strides[0], *strides]
    return np.ndarray(shape, np.int32, array, access.base * 4, strides)


def _move(i: Fields, store: bool) -> list[Access]:
    local = Memory.WEIGHT if not store and i["target"] == LoadTarget.WEIGHT else Memory.SCRATCH
    run = (i["n0"], 1)
    far = run if store else (i["coded"] or i["n0"], 1)
    dram = Access(Memory.DRAM, store, i["dram"], ((i["n2"], i["dram_s2"]), (i["n1"], i["dram_s1"]), far))
    near = Access(local, not store, i["local"], ((i["n2"], i["local_s2"]), (i["n1"], i["local_s1"]), run))
    return [near, dram] if store else [dram, near]


Span = tuple[int, int]
"""A half-open range of input coordinates, inside the tensor."""


def _span(first: int, outputs: int, stride: int, reach: int, size: int) -> Span:
    """What windows of `reach` coordinates read."""
    return max(first, 0), min(first + (outputs - 1) * stride + reach, size)


def _spans(i: Fields) -> tuple[Span, Span]:
    """Rows and columns that windows without dilation read."""
    rows = _span(i["iy0"], i["out_h"], i["stride_h"], i["kernel_h"], i["in_h"])
    return rows, _span(i["ix0"], i["out_w"], i["stride_w"], i["kernel_w"], i["in_w"])


def _padded(i: Fields, name: str, planes: tuple[tuple[int, int], ...], rows: Span, columns: Span) -> list[Access]:
    """Rows and columns of an operand whose windows may begin in the padding, or in a ring."""
    (y0, y1), (x0, x1) = rows, columns
    # All windows lie in the padding, so no word is read.
    if y0 >= y1 or x0 >= x1:
        return []
    step, ring, run = i[f"{name}_row"], i[f"{name}_ring"], (x1 - x0, 1)
    base, offset = i[f"{name}_base"] + x0, i[f"{name}_row_off"] + (y0 - i["iy0"]) * step
    if not ring:
        return [Access(Memory.SCRATCH, False, (base + offset) % ADDRESS_SPACE, (*planes, (y1 - y0, step), run))]
    # In a ring buffer a row may wrap, so each row is an access of its own.
    starts = [(offset + k * step) % ring for k in range(y1 - y0)]
    return [Access(Memory.SCRATCH, False, (base + s) % ADDRESS_SPACE, (*planes, run)) for s in starts]


def _conv_columns(i: Fields, params: HardwareParams) -> Span:
    """The words of a row that a CONV reads."""
    if i["mode"] != ConvMode.PACKED:
        reach = (i["kernel_w"] - 1) * i["dilation_w"] + 1
        return _span(i["ix0"], i["out_w"], i["stride_w"], reach, i["in_w"])
    group = params.pixels_per_word
    first, stop = _span(i["ix0"], i["out_w"], i["stride_w"], i["kernel_w"] * i["dilation_w"] * group, i["in_w"])
    return first // group, -(-stop // group)


def _conv_input(i: Fields, params: HardwareParams) -> list[Access]:
    reach = (i["kernel_h"] - 1) * i["dilation_h"] + 1
    rows = _span(i["iy0"], i["out_h"], i["stride_h"], reach, i["in_h"])
    step, plane, groups, blocks = i["in_block_step"], i["in_plane"], i["out_blocks"], i["in_blocks"]
    # The input ranges of consecutive output blocks then overlap, so their union is one dimension.
    if step == plane:
        planes: tuple[tuple[int, int], ...] = ((groups + blocks - 1, plane),)
    else:
        planes = ((groups if step else 1, step), (blocks, plane))
    return _padded(i, "in", planes, rows, _conv_columns(i, params))


def _depthwise(i: Fields) -> list[Access]:
    constants = Access(Memory.SCRATCH, False, i["b_base"], ((constant_words(i["kernel_h"], i["kernel_w"]), 1),))
    # One block: results of all instructions have the same dimensions.
    dims = ((1, 0), (i["out_h"], i["out_row"]), (i["out_w"], i["out_x"]))
    return [*_padded(i, "a", (), *_spans(i)), constants, Access(Memory.SCRATCH, True, i["out_base"], dims)]


def _conv(i: Fields, params: HardwareParams) -> list[Access]:
    words = conv_stream(i, params).words
    out_blocks = -(-(i["out_lane"] + i["out_blocks"] * params.cols) // params.rows)
    accesses = _conv_input(i, params)
    accesses.append(Access(Memory.WEIGHT, False, i["weights"], ((words, 1),)))
    if i["residual"]:
        dims = ((-(-i["out_blocks"] * params.cols // params.rows), i["res_plane"]), (i["out_h"], i["res_row"]))
        accesses.append(Access(Memory.SCRATCH, False, i["res_base"], (*dims, (i["out_w"], 1))))
    accesses.append(_output(i, out_blocks))
    return accesses


def _output(i: Fields, blocks: int) -> Access:
    # Not necessarily contiguous: a phase of a transposed convolution writes every `out_x`-th pixel.
    dims = ((blocks, i["out_plane"]), (i["out_h"], i["out_row"]), (i["out_w"], i["out_x"]))
    return Access(Memory.SCRATCH, True, i["out_base"], dims)


def _operand(i: Fields, name: str, size: tuple[int, int], step: int = 1) -> Access:
    dims = ((i["blocks"], i[f"{name}_plane"]), (size[0], i[f"{name}_row"]), (size[1], step))
    return Access(Memory.SCRATCH, False, i[f"{name}_base"], dims)


def _copy(i: Fields) -> list[Access]:
    size = (-(-i["out_h"] // i["up_h"]), -(-i["out_w"] // i["up_w"]))
    return [_operand(i, "a", size, i["a_x"]), _output(i, i["blocks"])]


def _pair(i: Fields) -> list[Access]:
    size = (i["out_h"], i["out_w"])
    return [_operand(i, "a", size), _operand(i, "b", size), _output(i, i["blocks"])]


def _pool(i: Fields) -> list[Access]:
    (y0, y1), (x0, x1) = _spans(i)
    if y0 >= y1 or x0 >= x1:
        return [_output(i, i["blocks"])]
    base = (i["a_base"] + y0 * i["a_row"] + x0) % ADDRESS_SPACE
    dims = ((i["blocks"], i["a_plane"]), (y1 - y0, i["a_row"]), (x1 - x0, 1))
    return [Access(Memory.SCRATCH, False, base, dims), _output(i, i["blocks"])]


def footprint(instruction: Instruction, params: HardwareParams) -> Sequence[Access]:
    """The words that an instruction may read or write; reads come first.

    Input rows and columns that a stride steps over count as read. Weight addresses past the memory's end wrap.
    """
    i = instruction.values
    match instruction.spec.pattern:
        case AccessPattern.MOVE:
            return _move(i, instruction.kind is Kind.STORE)
        case AccessPattern.CONV:
            return _conv(i, params)
        case AccessPattern.TABLE:
            return [Access(Memory.SCRATCH, False, i["a_base"], ((params.table_words, 1),))]
        case AccessPattern.COPY:
            return _copy(i)
        case AccessPattern.ELEMENTWISE:
            return _pair(i)
        case AccessPattern.WINDOW:
            return _pool(i)
        case AccessPattern.CHANNELS:
            return [_operand(i, "a", (i["out_h"], i["out_w"])), _output(i, i["blocks"])]
        case AccessPattern.NORM:
            constants = Access(Memory.SCRATCH, False, i["b_base"], ((CONSTANT_WORDS * i["blocks"], 1),))
            return [_operand(i, "a", (i["out_h"], i["out_w"])), constants, _output(i, i["blocks"])]
        case AccessPattern.DEPTHWISE:
            return _depthwise(i)
        case _:
            return []
