"""The words that an instruction reads and writes, counted out one by one.

The compiler's `footprint` describes the same words by strides. It need not cover steps that wrap, and an error in it
must not hide an error in the hardware, so this module shares nothing with it.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from intloom.hw.spec.conv_stream import conv_stream
from intloom.hw.spec.fields import DRAM_BITS, SCRATCH_BITS
from intloom.hw.spec.isa import AccessPattern, ConvMode, Instruction, Kind, LoadTarget
from intloom.hw.spec.norm import CONSTANT_WORDS
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.vector_depthwise import constant_words

Addresses = NDArray[np.int64]
_LOCAL = 1 << SCRATCH_BITS
_NONE = np.zeros(0, np.int64)


@dataclass
class Words:
    """Sorted word addresses by memory; `written` has them in the order of the writes, with repetitions."""

    reads: dict[str, Addresses] = field(default_factory=dict)
    writes: dict[str, Addresses] = field(default_factory=dict)
    written: Addresses = field(default_factory=lambda: _NONE)


def memory_words(params: HardwareParams) -> int:
    """Words of memory that an offset can reach from a base of 0."""
    return min(1 << DRAM_BITS, (1 << params.axi_addr_bits) // params.word_bytes)


def _grid(base: int, *dims: tuple[int, int]) -> Addresses:
    addresses = np.array([base], np.int64)
    for count, step in dims:
        addresses = (addresses[:, None] + np.arange(count, dtype=np.int64) * step).reshape(-1)
    return addresses


def _output(i: Instruction, blocks: int) -> Addresses:
    return _grid(i["out_base"], (blocks, i["out_plane"]), (i["out_h"], i["out_row"]), (i["out_w"], i["out_x"])) % _LOCAL


def _inside(first: int, count: int, stride: int, reach: int, size: int) -> Addresses:
    """Coordinates inside the tensor under `count` windows of `reach`, with those that a stride steps over."""
    coordinates = np.arange(first, first + (count - 1) * stride + reach)
    return coordinates[(coordinates >= 0) & (coordinates < size)]


def _conv_input(i: Instruction, p: HardwareParams) -> Addresses:
    group = p.pixels_per_word if i["mode"] == ConvMode.PACKED else 1
    reach_h = (i["kernel_h"] - 1) * i["dilation_h"] + 1
    reach_w = ((i["kernel_w"] - 1) * i["dilation_w"] + 1) * group
    rows = _inside(i["iy0"], i["out_h"], i["stride_h"], reach_h, i["in_h"])
    columns = np.unique(_inside(i["ix0"], i["out_w"], i["stride_w"], reach_w, i["in_w"]) // group)
    offsets = (i["in_row_off"] + (rows - i["iy0"]) * i["in_row"]) % (i["in_ring"] or _LOCAL)
    bases = _grid(i["in_base"], (i["out_blocks"], i["in_block_step"]), (i["in_blocks"], i["in_plane"]))
    bases = np.unique(bases % _LOCAL)
    return (bases[:, None, None] + offsets[:, None] + columns).reshape(-1) % _LOCAL


def _pool_input(i: Instruction) -> Addresses:
    rows = _inside(i["iy0"], i["out_h"], i["stride_h"], i["kernel_h"], i["in_h"])
    columns = _inside(i["ix0"], i["out_w"], i["stride_w"], i["kernel_w"], i["in_w"])
    planes = _grid(i["a_base"], (i["blocks"], i["a_plane"]))
    return (planes[:, None, None] + rows[:, None] * i["a_row"] + columns).reshape(-1) % _LOCAL


def _move(i: Instruction, p: HardwareParams) -> Words:
    run, coded = (i["n0"], 1), i["coded"] if i.kind is Kind.LOAD else 0
    far = _grid(i["dram"], (i["n2"], i["dram_s2"]), (i["n1"], i["dram_s1"])) % memory_words(p)
    far = (far[:, None] + np.arange(coded or i["n0"])).reshape(-1)
    near = _grid(i["local"], (i["n2"], i["local_s2"]), (i["n1"], i["local_s1"]), run)
    if i.kind is Kind.STORE:
        return Words({"scratch": near % _LOCAL}, {"dram": far}, far)
    if i["target"] == LoadTarget.WEIGHT:
        return Words({"dram": far}, {"weight": near % p.weight_words}, near % p.weight_words)
    return Words({"dram": far}, {"scratch": near % _LOCAL}, near % _LOCAL)


def _conv(i: Instruction, p: HardwareParams) -> Words:
    reads = _conv_input(i, p)
    channels = i["out_blocks"] * p.cols
    if i["residual"]:
        dims = ((-(-channels // p.rows), i["res_plane"]), (i["out_h"], i["res_row"]), (i["out_w"], 1))
        reads = np.concatenate([reads, _grid(i["res_base"], *dims) % _LOCAL])
    stream = np.arange(min(conv_stream(i, p).words, p.weight_words)) + i["weights"]
    written = _output(i, -(-(i["out_lane"] + channels) // p.rows))
    return Words({"scratch": reads, "weight": stream % p.weight_words}, {"scratch": written}, written)


def _operand(i: Instruction, name: str) -> Addresses:
    dims = ((i["blocks"], i[f"{name}_plane"]), (i["out_h"], i[f"{name}_row"]), (i["out_w"], 1))
    return _grid(i[f"{name}_base"], *dims) % _LOCAL


def _copy_input(i: Instruction) -> Addresses:
    rows, columns = -(-i["out_h"] // i["up_h"]), -(-i["out_w"] // i["up_w"])
    return _grid(i["a_base"], (i["blocks"], i["a_plane"]), (rows, i["a_row"]), (columns, i["a_x"])) % _LOCAL


def _depthwise(i: Instruction) -> Words:
    rows = _inside(i["iy0"], i["out_h"], i["stride_h"], i["kernel_h"], i["in_h"])
    columns = _inside(i["ix0"], i["out_w"], i["stride_w"], i["kernel_w"], i["in_w"])
    offsets = (i["a_row_off"] + (rows - i["iy0"]) * i["a_row"]) % (i["a_ring"] or _LOCAL)
    inputs = (i["a_base"] + offsets[:, None] + columns).reshape(-1) % _LOCAL
    constants = (i["b_base"] + np.arange(constant_words(i["kernel_h"], i["kernel_w"]))) % _LOCAL
    written = _grid(i["out_base"], (i["out_h"], i["out_row"]), (i["out_w"], i["out_x"])) % _LOCAL
    return Words({"scratch": np.concatenate([inputs, constants])}, {"scratch": written}, written)


def words_of(i: Instruction, p: HardwareParams) -> Words:
    """The words that an instruction reads and writes."""
    pattern = i.spec.pattern
    if pattern is AccessPattern.MOVE:
        return _move(i, p)
    if pattern is AccessPattern.CONV:
        return _conv(i, p)
    if pattern is AccessPattern.TABLE:
        return Words({"scratch": i["a_base"] + np.arange(p.table_words)})
    if pattern is AccessPattern.DEPTHWISE:
        return _depthwise(i)
    written = _output(i, i["blocks"])
    if pattern is AccessPattern.COPY:
        reads = _copy_input(i)
    elif pattern is AccessPattern.WINDOW:
        reads = _pool_input(i)
    elif pattern is AccessPattern.CHANNELS:
        reads = _operand(i, "a")
    elif pattern is AccessPattern.NORM:
        constants = (i["b_base"] + np.arange(CONSTANT_WORDS * i["blocks"])) % _LOCAL
        reads = np.concatenate([_operand(i, "a"), constants])
    else:
        reads = np.concatenate([_operand(i, "a"), _operand(i, "b")])
    return Words({"scratch": reads}, {"scratch": written}, written)
