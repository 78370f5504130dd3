"""Tensors reconstructed from the write log of an RTL run: later tensors may have overwritten their memory.

Tensors that never leave the scratchpad are reconstructed from the results of the array and the vector unit.
"""

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.program.footprint import addresses
from intloom.compiler.program.memory import read_tensor, without_pairs
from intloom.compiler.program.program import Program, TensorBuffer
from intloom.sim.compare.expected_writes import writes_by_instruction
from intloom.sim.local_tensors import LocalTensors, result_access
from intloom.sim.rtl.write_log import Writer, byte_masks


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
    memory = np.zeros((program.memory_words, width := program.params.word_bytes), np.uint8)
    completed, kept = tensors_by_last_store(program), LocalTensors(program) if local else None
    tensors: dict[str, NDArray[np.int8]] = {}
    for index, writer, records in writes_by_instruction(program, writes):
        if writer is Writer.STORE:
            words = records["word"]
            memory[words] = np.where(byte_masks(records, width), records["data"], memory[words])
            for tensor in completed[index]:
                tensors[tensor.name] = read_tensor(program, memory.reshape(-1), tensor)
        elif kept is not None and (result := kept.results.get(index)) is not None:
            words = addresses(result_access(program, result))
            order = np.argsort(words, kind="stable")
            at = order[np.searchsorted(words[order], records["word"])]
            kept.put(result, at, records["data"], byte_masks(records, width))
    return without_pairs(tensors | kept.tensors() if kept is not None else tensors)
