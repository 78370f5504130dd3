"""From a word of memory to the tensor, channel, y and x that it holds."""

from dataclasses import dataclass

import numpy as np

from intloom.compiler.program.footprint import Memory, addresses, footprint
from intloom.compiler.program.memory import PIXEL_CHANNELS
from intloom.compiler.program.program import Layout, Program, TensorBuffer
from intloom.hw.spec.isa import Kind
from intloom.sim.local_tensors import LocalTensors, result_access


@dataclass(frozen=True)
class TensorElement:
    """One value of a tensor."""

    tensor: str
    channel: int
    y: int
    x: int


def element_in_dram(program: Program, word: int, byte: int, index: int) -> TensorElement | None:
    """The tensor value in a byte of DRAM that instruction `index` wrote or read.

    Tensors may share memory over time: of the tensors with this word, the one whose last store comes next is chosen.
    """
    candidates = [p for p in program.tensors if p.address <= word < p.address + p.words]
    later = [p for p in candidates if p.first_instruction is not None and p.first_instruction >= index]
    if not candidates:
        return None
    tensor = min(later, key=lambda p: p.first_instruction or 0) if later else candidates[0]
    return _element(program, tensor, word - tensor.address, byte)


def _element(program: Program, tensor: TensorBuffer, offset: int, byte: int) -> TensorElement:
    _, _, height, width = tensor.shape
    if tensor.layout is Layout.PIXELS4:
        row = -(-width // program.params.pixels_per_word)
        y, group = divmod(offset, row)
        x = group * program.params.pixels_per_word + byte // PIXEL_CHANNELS
        return TensorElement(tensor.name, byte % PIXEL_CHANNELS, y, x)
    block, rest = divmod(offset, height * width)
    y, x = divmod(rest, width)
    return TensorElement(tensor.name, block * program.params.rows + byte, y, x)


def _element_in_local_tensor(program: Program, word: int, byte: int, index: int) -> TensorElement | None:
    """The value of a tensor that stays in the scratchpad."""
    local = LocalTensors(program)
    result = local.results.get(index)
    if result is None:
        return None
    hits = np.flatnonzero(addresses(result_access(program, result)) == word)
    if not len(hits):
        return None
    block, y, x = (int(c[hits[0]]) for c in local.coordinates(result))
    for tensor in program.local_tensors:
        channel = (block - tensor.first_block) * program.params.rows + byte
        if tensor.buffer == result.buffer and 0 <= channel < tensor.shape[1]:
            return TensorElement(tensor.name, channel, y, x)
    return None


def element_in_scratchpad(program: Program, word: int, byte: int, index: int) -> TensorElement | None:
    """The tensor value in a byte of the scratchpad that instruction `index` wrote, if it is part of a tensor."""
    if (local := _element_in_local_tensor(program, word, byte, index)) is not None:
        return local
    for later in range(index + 1, len(program.instructions)):
        instruction = program.instructions[later]
        accesses = footprint(instruction, program.params)
        if instruction.kind is Kind.STORE:
            source, target = accesses
            hits = np.flatnonzero(addresses(source) == word)
            if len(hits):
                return element_in_dram(program, int(addresses(target)[hits[0]]), byte, later)
        written = [a for a in accesses if a.write and a.memory is Memory.SCRATCH]
        # The word is overwritten before any store reads it, so it belongs to no stored tensor.
        if any((addresses(a) == word).any() for a in written):
            return None
    return None
