"""Tensors reconstructed from the write log of an RTL run: later tensors may have overwritten their memory.

Tensors that never leave the scratchpad are reconstructed from the results of the array and the vector unit.
"""

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.program.footprint import addresses
from intloom.compiler.program.memory import read_tensor, without_pairs
from intloom.compiler.program.program import Program, TensorBuffer
from intloom.hw.spec.formats import move_words
from intloom.hw.spec.isa import Kind
from intloom.sim.compare.expected_writes import write_count, writer_of
from intloom.sim.local_tensors import LocalTensors, result_access
from intloom.sim.rtl.write_log import Writer


def tensors_by_last_store(program: Program) -> dict[int, list[TensorBuffer]]:
    """For each instruction the tensors whose last word it stores."""
    tensors: dict[int, list[TensorBuffer]] = defaultdict(list)
    for tensor in program.tensors:
        if tensor.first_instruction is not None:
            tensors[tensor.first_instruction].append(tensor)
    return tensors


def tensor_snapshots(program: Program, writes: NDArray[np.void], *, local: bool = True) -> dict[str, NDArray[np.int8]]:
    """Every tensor that the program stores and, with `local`, keeps in the scratchpad; `writes` is the write log.

    Their names and pixels are those of the graph.

    A stored tensor has its value after its last store.
    """
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
    return without_pairs(tensors | _local_tensors(program, writes) if local else tensors)


def _local_tensors(program: Program, writes: NDArray[np.void]) -> dict[str, NDArray[np.int8]]:
    local = LocalTensors(program)
    by_writer = {w: writes[writes["writer"] == w] for w in (Writer.MAC, Writer.VEC)}
    position = dict.fromkeys(by_writer, 0)
    lanes = np.arange(program.params.word_bytes, dtype=np.uint32)
    for index, instruction in enumerate(program.instructions):
        writer = writer_of(instruction)
        if writer not in by_writer:
            continue
        # Each write port writes in program order, so a count per port assigns every write to its instruction.
        first, count = position[writer], write_count(instruction, program.params)
        position[writer] += count
        if (result := local.results.get(index)) is None:
            continue
        records = by_writer[writer][first : first + count]
        words = addresses(result_access(program, result))
        order = np.argsort(words, kind="stable")
        mask = (records["mask"][:, None] >> lanes & 1).astype(bool)
        local.put(result, order[np.searchsorted(words[order], records["word"])], records["data"], mask)
    return local.tensors()


def _apply(memory: NDArray[np.uint8], records: NDArray[np.void]) -> None:
    lanes = np.arange(memory.shape[1], dtype=np.uint32)
    mask = (records["mask"][:, None] >> lanes & 1).astype(bool)
    words = records["word"]
    memory[words] = np.where(mask, records["data"], memory[words])
