"""What the machine holds between instructions."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.program.footprint import ADDRESS_SPACE
from intloom.hw.spec.arith import Affine
from intloom.hw.spec.formats import TABLE_BYTES
from intloom.hw.spec.isa import Instruction
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.softmax import EXPONENTIAL_BYTES

Words = NDArray[np.int8]
"""[..., word, byte]."""


@dataclass
class Machine:
    """Memories as words of bytes, and what the units keep between instructions."""

    params: HardwareParams
    dram: Words
    scratch: Words
    weights: Words
    mac_table: NDArray[np.int8] = field(default_factory=lambda: np.zeros(TABLE_BYTES, np.int8))
    vector_table: NDArray[np.int8] = field(default_factory=lambda: np.zeros(TABLE_BYTES, np.int8))
    exponentials: NDArray[np.uint8] = field(
        default_factory=lambda: np.zeros((EXPONENTIAL_BYTES, TABLE_BYTES), np.uint8)
    )
    """Byte by byte, from the lowest on."""
    sums: NDArray[np.int32] = field(default_factory=lambda: np.zeros((0, 0), np.int32))
    """[pixel, channel] of the last CONV, before the bias."""


def blank_machine(params: HardwareParams, memory: NDArray[np.uint8]) -> Machine:
    """A machine with this memory and empty scratchpad and weight memory."""
    word = params.word_bytes
    return Machine(
        params,
        memory.view(np.int8).reshape(-1, word),
        np.zeros((params.scratch_words, word), np.int8),
        np.zeros((params.weight_words, word), np.int8),
    )


def grid(base: int, *dims: tuple[int, int]) -> NDArray[np.int64]:
    """Addresses base + sum of index * step over all dimensions (count, step), as an array with one axis for each."""
    addresses = np.asarray(base, np.int64)
    for count, step in dims:
        addresses = addresses[..., None] + np.arange(count, dtype=np.int64) * step
    # Addresses are computed modulo the address space, as in the hardware.
    return addresses % ADDRESS_SPACE


def output_grid(i: Instruction, blocks: int) -> NDArray[np.int64]:
    """Addresses [block, y, x] of an instruction's output words."""
    return grid(i["out_base"], (blocks, i["out_plane"]), (i["out_h"], i["out_row"]), (i["out_w"], i["out_x"]))


def operand(machine: Machine, i: Instruction, name: str) -> Words:
    """An elementwise operand [block, y, x, byte] of the output's shape."""
    dims = ((i["blocks"], i[f"{name}_plane"]), (i["out_h"], i[f"{name}_row"]), (i["out_w"], 1))
    return machine.scratch[grid(i[f"{name}_base"], *dims)]


def affine_fields(i: Instruction) -> Affine:
    """The affine coefficients in an instruction's fields."""
    return Affine(m1=i["m1"], m2=i["m2"], c=i["c"], shift=i["shift"], even=bool(i["even"]))


def through(table: NDArray[np.int8], values: Words) -> Words:
    """Every byte through a table."""
    # Tables are indexed by the byte, so negative values take the upper half.
    return table[values.view(np.uint8)]


def write_vector(machine: Machine, i: Instruction, values: Words) -> None:
    """Write a vector result [block, y, x, byte], through the vector table if the instruction says so."""
    if i["table"]:
        values = through(machine.vector_table, values)
    machine.scratch[output_grid(i, i["blocks"])] = values
