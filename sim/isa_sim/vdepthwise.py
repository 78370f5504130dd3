"""VDEPTHWISE."""

from itertools import product

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.program.footprint import ADDRESS_SPACE
from intloom.hw.spec.isa import Instruction, Kind
from intloom.hw.spec.vector_depthwise import constant_words, unpack_depthwise_scale, walk_columns
from intloom.sim.isa_sim.arithmetic import requantize
from intloom.sim.isa_sim.machine import Machine, Words, grid, through
from intloom.sim.isa_sim.registry import executes


def _window(machine: Machine, i: Instruction) -> Words:
    """Input words [y, x, byte] under all windows, from (iy0, ix0) on, padding filled in."""
    rows = np.arange((i["out_h"] - 1) * i["stride_h"] + i["kernel_h"], dtype=np.int64)
    y, x = i["iy0"] + rows, i["ix0"] + np.arange(walk_columns(i))
    inside = ((y >= 0) & (y < i["in_h"]))[:, None] & (x >= 0) & (x < i["in_w"])
    # Without a ring only the address itself wraps.
    offsets = (i["a_row_off"] + rows * i["a_row"]) % (i["a_ring"] or ADDRESS_SPACE)
    words = (i["a_base"] + offsets[:, None] + x) % ADDRESS_SPACE
    window = np.full((*words.shape, machine.params.rows), i["zp_in"], np.int8)
    window[inside] = machine.scratch[words[inside]]
    return window


def _constants(
    machine: Machine, i: Instruction
) -> tuple[Words, NDArray[np.int32], NDArray[np.uint32], NDArray[np.uint8]]:
    """Weights [kernel row, kernel column, channel]; bias, mantissa and shift of each channel."""
    data = machine.scratch[grid(i["b_base"], (constant_words(i["kernel_h"], i["kernel_w"]), 1))]
    taps = i["kernel_h"] * i["kernel_w"]
    bias = data[taps : taps + 4].reshape(-1).view("<i4").astype(np.int32)
    words = data[taps + 4 :].reshape(-1).view("<u4")
    scales = [unpack_depthwise_scale(int(word), machine.params.mantissa_bits) for word in words]
    mantissa = np.array([scale.mantissa for scale in scales], np.uint32)
    shift = np.array([scale.shift for scale in scales], np.uint8)
    return data[:taps].reshape(i["kernel_h"], i["kernel_w"], -1), bias, mantissa, shift


@executes(Kind.VDEPTHWISE)
def vdepthwise(machine: Machine, instruction: Instruction) -> None:
    """Depthwise convolution of one channel block."""
    i = instruction
    window = _window(machine, i).astype(np.int32)
    weights, bias, mantissa, shift = _constants(machine, i)
    down, right = i["out_h"] * i["stride_h"], i["out_w"] * i["stride_w"]
    sums = np.tile(bias, (i["out_h"], i["out_w"], 1))
    for ky, kx in product(range(i["kernel_h"]), range(i["kernel_w"])):
        # A slice ends at the window's edge, behind which a stride would lead.
        sums += window[ky : ky + down : i["stride_h"], kx : kx + right : i["stride_w"]] * weights[ky, kx]
    values = requantize(sums, mantissa, shift, i["zp_out"], machine.params.match)
    if i["table"]:
        values = through(machine.vector_table, values)
    machine.scratch[grid(i["out_base"], (i["out_h"], i["out_row"]), (i["out_w"], i["out_x"]))] = values
