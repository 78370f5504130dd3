"""CONV."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.program.footprint import ADDRESS_SPACE
from intloom.compiler.program.memory import PIXEL_CHANNELS
from intloom.hw.spec.arith import MAX_SHIFT, Affine
from intloom.hw.spec.conv_stream import conv_stream
from intloom.hw.spec.formats import RESIDUAL_BYTES, SCALE_MANTISSA_MASK, SCALE_SHIFT_LSB, TABLE_BYTES, unpack_residual
from intloom.hw.spec.isa import ConvMode, Instruction, Kind, TableUse
from intloom.hw.spec.params import HardwareParams
from intloom.sim.isa_sim.arithmetic import affine, product, requantize
from intloom.sim.isa_sim.machine import Machine, Words, grid, output_grid, through
from intloom.sim.isa_sim.registry import executes


@dataclass(frozen=True)
class _Constants:
    """What a CONV finds in weight memory."""

    table: NDArray[np.int8] | None
    residual: Affine | None
    bias: NDArray[np.int32]
    mantissa: NDArray[np.uint32]
    shift: NDArray[np.uint8]
    matrix: NDArray[np.int16]
    """[output block, tap * lane, column], taps in the order kernel row, kernel column, input block."""


def _weight_bytes(machine: Machine, i: Instruction) -> NDArray[np.uint8]:
    words = conv_stream(i, machine.params).words
    addresses = (i["weights"] + np.arange(words)) % machine.params.weight_words
    return machine.weights[addresses].view(np.uint8).reshape(-1)


def _constants(machine: Machine, i: Instruction) -> _Constants:
    p = machine.params
    data = _weight_bytes(machine, i)
    table = residual = None
    if i["table"] == TableUse.LOAD:
        table, data = data[:TABLE_BYTES].view(np.int8), data[TABLE_BYTES:]
    if i["residual"]:
        residual = unpack_residual(data[:RESIDUAL_BYTES].tobytes(), i["res_shift"], even=bool(i["res_even"]))
        data = data[p.residual_words * p.word_bytes :]
    blocks = data.reshape(i["out_blocks"], -1)
    head = p.channel_words * p.word_bytes
    parameters = np.ascontiguousarray(blocks[:, :head]).reshape(i["out_blocks"], 2, -1)
    bias = np.ascontiguousarray(parameters[:, 0]).view("<i4").reshape(-1)
    scale = np.ascontiguousarray(parameters[:, 1]).view("<u4").reshape(-1)
    body = blocks[:, head:].view(np.int8)
    zero_points = np.zeros((i["out_blocks"], p.cols), np.int16)
    if i["weight_zero_points"]:
        zero_points += body[:, : p.cols]
        body = body[:, p.zero_point_words * p.word_bytes :]
    weights = body.reshape(i["out_blocks"], -1, p.cols, p.rows) - zero_points[:, None, :, None]
    matrix = weights.transpose(0, 1, 3, 2).reshape(i["out_blocks"], -1, p.cols)
    mantissa = (scale & SCALE_MANTISSA_MASK & (1 << p.mantissa_bits) - 1).astype(np.uint32)
    shift = (scale >> SCALE_SHIFT_LSB & MAX_SHIFT).astype(np.uint8)
    return _Constants(table, residual, bias, mantissa, shift, matrix)


def _row_addresses(i: Instruction, count: int) -> NDArray[np.int64]:
    """Offsets of input rows iy0, iy0 + 1, … in a plane."""
    offsets = i["in_row_off"] + np.arange(count, dtype=np.int64) * i["in_row"]
    # Without a ring only the address itself wraps.
    return offsets % (i["in_ring"] or ADDRESS_SPACE)


def _valid(first: int, count: int, size: int) -> slice:
    """Which of `count` coordinates from `first` on lie inside a tensor of `size`."""
    start = min(max(0, -first), count)
    return slice(start, max(start, min(count, size - first)))


def _window(machine: Machine, i: Instruction, base: int) -> Words:
    """Input words [block, y, x, lane] under all kernels of the tile, padded; packed: [block, y, pixel, channel]."""
    blocks = i["in_blocks"]
    rows = (i["out_h"] - 1) * i["stride_h"] + (i["kernel_h"] - 1) * i["dilation_h"] + 1
    columns = _columns(i, machine.params)
    inside_y, inside_x = _valid(i["iy0"], rows, i["in_h"]), _valid(i["ix0"], columns, i["in_w"])
    offsets = _row_addresses(i, rows)[inside_y]
    x = i["ix0"] + np.arange(columns)[inside_x]
    planes = base + np.arange(blocks, dtype=np.int64)[:, None, None] * i["in_plane"]
    if i["mode"] == ConvMode.PACKED:
        group = machine.params.pixels_per_word
        words = (planes + offsets[:, None] + x // group) % ADDRESS_SPACE
        pixels = machine.scratch.reshape(len(machine.scratch), group, PIXEL_CHANNELS)
        window = np.full((blocks, rows, columns, PIXEL_CHANNELS), i["zp_in"], np.int8)
        window[:, inside_y, inside_x] = pixels[words, x % group]
        return window
    words = (planes + offsets[:, None] + x) % ADDRESS_SPACE
    window = np.full((blocks, rows, columns, machine.params.rows), i["zp_in"], np.int8)
    window[:, inside_y, inside_x] = machine.scratch[words]
    return window


def _columns(i: Instruction, params: HardwareParams) -> int:
    reach = (i["out_w"] - 1) * i["stride_w"]
    if i["mode"] == ConvMode.PACKED:
        group = params.pixels_per_word
        return reach + (i["kernel_w"] - 1) * i["dilation_w"] * group + group
    return reach + (i["kernel_w"] - 1) * i["dilation_w"] + 1


def _unfold(machine: Machine, i: Instruction, base: int) -> Words:
    """The input under every tap: [pixel, tap * lane], taps in the order of the weights."""
    window = _window(machine, i, base)
    block, row, column, lane = window.strides
    step = i["dilation_w"] * (machine.params.pixels_per_word if i["mode"] == ConvMode.PACKED else 1)
    shape = (i["out_h"], i["out_w"], i["kernel_h"], i["kernel_w"], i["in_blocks"], machine.params.rows)
    # A packed word is rows/4 neighboring pixels, which are contiguous in the window.
    strides = (row * i["stride_h"], column * i["stride_w"], row * i["dilation_h"], column * step, block, lane)
    view = np.lib.stride_tricks.as_strided(window, shape, strides, writeable=False)
    return view.reshape(i["out_h"] * i["out_w"], -1)


def _sums(machine: Machine, i: Instruction, matrix: NDArray[np.int16]) -> NDArray[np.int32]:
    """Accumulators [pixel, channel] before the bias."""
    if not i["in_block_step"]:
        together = matrix.transpose(1, 0, 2).reshape(matrix.shape[1], -1)
        return product(_unfold(machine, i, i["in_base"]), together)
    bases = [i["in_base"] + b * i["in_block_step"] for b in range(i["out_blocks"])]
    return np.concatenate([product(_unfold(machine, i, b), m) for b, m in zip(bases, matrix, strict=True)], axis=1)


def _wrapped(sums: NDArray[np.int32], bits: int) -> NDArray[np.int32]:
    """Sums as an accumulator of `bits` bits holds them."""
    spare = np.int32(32 - bits)
    return (sums << spare) >> spare if spare else sums


def _corrections(i: Instruction, matrix: NDArray[np.int16], bits: int) -> NDArray[np.int32]:
    """What is subtracted from the sums of each channel."""
    totals = matrix.sum(axis=1, dtype=np.int64).reshape(-1) * (i["zp_in"] if i["subtract_zp_in"] else 0)
    return _wrapped(totals.astype(np.int32), bits)


@executes(Kind.CONV)
def conv(machine: Machine, instruction: Instruction) -> None:
    """Convolve one tile; see the manual."""
    i, p = instruction, machine.params
    constants = _constants(machine, i)
    if constants.table is not None:
        machine.mac_table = constants.table
    sums = _sums(machine, i, constants.matrix)
    machine.sums = _wrapped(machine.sums + sums if i["continue_sums"] else sums, p.acc_bits)
    sums = machine.sums + constants.bias
    sums -= _corrections(i, constants.matrix, p.acc_bits)
    bytes_ = requantize(sums, constants.mantissa, constants.shift, i["zp_out"], p.match)
    if i["table"] != TableUse.NONE:
        bytes_ = through(machine.mac_table, bytes_)
    if constants.residual is not None:
        other = _residual(machine, i, bytes_.shape[1])
        bytes_ = affine(bytes_.astype(np.int64), other.astype(np.int64), constants.residual)
    _write(machine, i, bytes_)


def _residual(machine: Machine, i: Instruction, channels: int) -> Words:
    """The residual operand [pixel, channel]."""
    blocks = -(-channels // machine.params.rows)
    words = grid(i["res_base"], (blocks, i["res_plane"]), (i["out_h"], i["res_row"]), (i["out_w"], 1))
    values = machine.scratch[words].reshape(blocks, -1, machine.params.rows)
    return values.transpose(1, 0, 2).reshape(values.shape[1], -1)[:, :channels]


def _write(machine: Machine, i: Instruction, values: Words) -> None:
    """Write [pixel, channel] bytes; bytes of the first and last word that are not written keep their value."""
    rows, lane, channels = machine.params.rows, i["out_lane"], values.shape[1]
    blocks = -(-(lane + channels) // rows)
    words = output_grid(i, blocks).reshape(blocks, -1)
    # Read first: an output block may fill only a part of a word's lanes.
    old = machine.scratch[words].transpose(1, 0, 2).reshape(len(values), -1)
    old[:, lane : lane + channels] = values
    machine.scratch[words] = old.reshape(len(values), blocks, rows).transpose(1, 0, 2)
