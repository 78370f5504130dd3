"""Instructions of the vector unit, except VDEPTHWISE."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.program.footprint import ADDRESS_SPACE
from intloom.hw.spec.arith import INT8_MIN
from intloom.hw.spec.formats import TABLE_BYTES
from intloom.hw.spec.isa import Instruction, Kind
from intloom.hw.spec.norm import CONSTANT_WORDS
from intloom.hw.spec.softmax import unpack_exponentials
from intloom.sim.isa_sim.arithmetic import NormSums, affine, norm, softmax
from intloom.sim.isa_sim.machine import Machine, Words, affine_fields, grid, operand, output_grid, through, write_vector
from intloom.sim.isa_sim.registry import executes


@executes(Kind.VCOPY)
def vcopy(machine: Machine, instruction: Instruction) -> None:
    """Copy words, enlarged, with rotated and selected bytes."""
    i = instruction
    dims = ((i["blocks"], i["a_plane"]), (i["out_h"], 0), (i["out_w"], 0))
    rows = np.arange(i["out_h"]) // i["up_h"] * i["a_row"]
    columns = np.arange(i["out_w"]) // i["up_w"] * i["a_x"]
    source = (grid(i["a_base"], *dims) + rows[:, None] + columns) % ADDRESS_SPACE
    values = np.roll(machine.scratch[source], i["rotate"], axis=-1)
    if i["table"]:
        values = through(machine.vector_table, values)
    targets = output_grid(i, i["blocks"])
    chosen = slice(i["first_byte"], i["first_byte"] + i["byte_count"])
    result = machine.scratch[targets]
    result[..., chosen] = values[..., chosen]
    machine.scratch[targets] = result


@executes(Kind.VADD)
def vadd(machine: Machine, instruction: Instruction) -> None:
    """Quantized sum of two operands."""
    a = operand(machine, instruction, "a").astype(np.int64)
    b = operand(machine, instruction, "b").astype(np.int64)
    write_vector(machine, instruction, affine(a, b, affine_fields(instruction)))


@executes(Kind.VMUL)
def vmul(machine: Machine, instruction: Instruction) -> None:
    """Quantized product of two operands."""
    a = operand(machine, instruction, "a").astype(np.int64) - instruction["zp_a"]
    b = operand(machine, instruction, "b").astype(np.int64) - instruction["zp_b"]
    write_vector(machine, instruction, affine(a * b, 0, affine_fields(instruction)))


def _taps(machine: Machine, i: Instruction, outside: int) -> Iterator[Words]:
    """For each pixel of the window: the input bytes [block, y, x, byte] under it; `outside` where there is no input."""
    planes = grid(i["a_base"], (i["blocks"], i["a_plane"]))[:, None, None]
    for ky in range(i["kernel_h"]):
        y = i["iy0"] + np.arange(i["out_h"]) * i["stride_h"] + ky
        inside_y = (y >= 0) & (y < i["in_h"])
        for kx in range(i["kernel_w"]):
            x = i["ix0"] + np.arange(i["out_w"]) * i["stride_w"] + kx
            inside = inside_y[:, None] & (x >= 0) & (x < i["in_w"])
            # Where there is no input the address does not matter: any word will do.
            words = np.where(inside, (planes + y[:, None] * i["a_row"] + x) % ADDRESS_SPACE, 0)
            values = machine.scratch[words]
            values[:, ~inside] = outside
            yield values


@executes(Kind.VMAX)
def vmax(machine: Machine, instruction: Instruction) -> None:
    """Largest byte of each window; input outside does not count."""
    result = None
    for values in _taps(machine, instruction, INT8_MIN):
        result = values if result is None else np.maximum(result, values, out=result)
    if result is not None:
        write_vector(machine, instruction, result)


@executes(Kind.VAVG)
def vavg(machine: Machine, instruction: Instruction) -> None:
    """Scaled sum of each window; input outside counts as zp_in."""
    shape = (*output_grid(instruction, instruction["blocks"]).shape, machine.params.rows)
    total = np.zeros(shape, np.int64)
    for values in _taps(machine, instruction, instruction["zp_in"]):
        total += values
    write_vector(machine, instruction, affine(total, 0, affine_fields(instruction)))


def _loaded(machine: Machine, instruction: Instruction) -> Words:
    """The table that an instruction loads."""
    start = instruction["a_base"]
    return machine.scratch[start : start + machine.params.table_words].reshape(-1)[:TABLE_BYTES]


@executes(Kind.VTABLE)
def vtable(machine: Machine, instruction: Instruction) -> None:
    """Load the vector unit's table."""
    machine.vector_table = _loaded(machine, instruction).copy()


@executes(Kind.VEXP)
def vexp(machine: Machine, instruction: Instruction) -> None:
    """Load one byte of each exponential."""
    machine.exponentials[instruction["part"]] = _loaded(machine, instruction).view(np.uint8)


def _pixels(machine: Machine, i: Instruction) -> NDArray[np.int8]:
    """One row of bytes for each pixel: block by block, as channels are numbered."""
    return np.moveaxis(operand(machine, i, "a"), 0, 2).reshape(i["out_h"] * i["out_w"], -1)


def _write_pixels(machine: Machine, i: Instruction, result: NDArray[np.int8]) -> None:
    blocked = result.reshape(i["out_h"], i["out_w"], i["blocks"], -1)
    write_vector(machine, i, np.ascontiguousarray(np.moveaxis(blocked, 2, 0)))


@executes(Kind.VNORM)
def vnorm(machine: Machine, instruction: Instruction) -> None:
    """Layer normalization over the channels of each pixel."""
    i, params = instruction, machine.params
    words = machine.scratch[(i["b_base"] + np.arange(CONSTANT_WORDS * i["blocks"])) % ADDRESS_SPACE]
    # Gammas of a group of lanes, then its betas.
    gamma, beta = words.view(np.int16).reshape(-1, 2, params.softmax_lanes).swapaxes(0, 1).reshape(2, -1)
    counted = (i["blocks"] - 1) * params.rows + i["last_bytes"]
    sums = NormSums(counted, bool(i["center"]), i["zp_in"], i["epsilon"])
    _write_pixels(machine, i, norm(_pixels(machine, i), gamma, beta, sums))


@executes(Kind.VSOFTMAX)
def vsoftmax(machine: Machine, instruction: Instruction) -> None:
    """Softmax over the channels of each pixel."""
    i = instruction
    channels = (i["blocks"] - 1) * machine.params.rows + i["last_bytes"]
    # Each loaded part is one byte of all exponentials.
    exponentials = np.array(unpack_exponentials(machine.exponentials.T.tobytes()))
    _write_pixels(machine, i, softmax(_pixels(machine, i), exponentials, i["less"], i["zp_out"], channels))
