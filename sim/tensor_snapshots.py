"""Tensors as they were stored in memory during an RTL run, though others may have taken their place since."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.program.memory import read_tensor
from intloom.compiler.program.program import Program, TensorBuffer
from intloom.hw.spec.formats import move_words
from intloom.hw.spec.isa import Kind
from intloom.sim.rtl.write_log import Writer


def tensors_by_last_store(program: Program) -> dict[int, list[TensorBuffer]]:
    """The tensors that each instruction completes."""
    found: dict[int, list[TensorBuffer]] = defaultdict(list)
    for place in program.tensors:
        if place.first_instruction is not None:
            found[place.first_instruction].append(place)
    return found


def tensor_snapshots(program: Program, writes: NDArray[np.void]) -> dict[str, NDArray[np.int8]]:
    """Every tensor that the program stores, as it stood when it was complete; `writes` is the run's record."""
    stores = writes[writes["writer"] == Writer.STORE]
    memory = np.zeros((program.memory_words, program.params.word_bytes), np.uint8)
    completed = tensors_by_last_store(program)
    tensors: dict[str, NDArray[np.int8]] = {}
    position = 0
    for index, instruction in enumerate(program.instructions):
        if instruction.kind is not Kind.STORE:
            continue
        count = move_words(instruction)
        _apply(memory, stores[position : position + count])
        position += count
        for place in completed[index]:
            tensors[place.name] = read_tensor(program, memory.reshape(-1), place)
    return tensors


def _apply(memory: NDArray[np.uint8], records: NDArray[np.void]) -> None:
    lanes = np.arange(memory.shape[1], dtype=np.uint32)
    mask = (records["mask"][:, None] >> lanes & 1).astype(bool)
    words = records["word"]
    memory[words] = np.where(mask, records["data"], memory[words])
