"""Tensors reconstructed from the write log of an RTL run: later tensors may have overwritten their memory."""

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
    """For each instruction the tensors whose last word it stores."""
    found: dict[int, list[TensorBuffer]] = defaultdict(list)
    for tensor in program.tensors:
        if tensor.first_instruction is not None:
            found[tensor.first_instruction].append(tensor)
    return found


def tensor_snapshots(program: Program, writes: NDArray[np.void]) -> dict[str, NDArray[np.int8]]:
    """Every tensor that the program stores, with its value after its last store; `writes` is the run's write log."""
    stores = writes[writes["writer"] == Writer.STORE]
    memory = np.zeros((program.memory_words, program.params.word_bytes), np.uint8)
    completed = tensors_by_last_store(program)
    tensors: dict[str, NDArray[np.int8]] = {}
    position = 0
    for index, instruction in enumerate(program.instructions):
        if instruction.kind is not Kind.STORE:
            continue
        count = move_words(instruction)
        # The store unit writes in program order, so its records follow the STORE instructions.
        _apply(memory, stores[position : position + count])
        position += count
        for tensor in completed[index]:
            tensors[tensor.name] = read_tensor(program, memory.reshape(-1), tensor)
    return tensors


def _apply(memory: NDArray[np.uint8], records: NDArray[np.void]) -> None:
    lanes = np.arange(memory.shape[1], dtype=np.uint32)
    mask = (records["mask"][:, None] >> lanes & 1).astype(bool)
    words = records["word"]
    memory[words] = np.where(mask, records["data"], memory[words])
