"""Values of the tensors that a program keeps in the scratchpad, gathered from the results of its instructions."""

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.program.footprint import Access, footprint
from intloom.compiler.program.memory import channel_blocks
from intloom.compiler.program.program import LocalResult, Program

Bytes = NDArray[np.uint8]
Indices = NDArray[np.int64]


def result_access(program: Program, result: LocalResult) -> Access:
    """The words that the instruction of a local result writes."""
    return next(a for a in footprint(program.instructions[result.instruction], program.params) if a.write)


class LocalTensors:
    """Collects the buffers of all local results of one run."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._widths = {t.buffer: t.shape[3] for t in program.local_tensors}
        self._buffers: dict[int, Bytes] = {}
        blocks: dict[int, int] = defaultdict(int)
        for tensor in program.local_tensors:
            stop = tensor.first_block + channel_blocks(tensor.shape[1], program.params)
            blocks[tensor.buffer] = max(blocks[tensor.buffer], stop)
        for tensor in program.local_tensors:
            shape = (blocks[tensor.buffer], *tensor.shape[2:], program.params.rows)
            self._buffers.setdefault(tensor.buffer, np.zeros(shape, np.uint8))
        self.results: dict[int, LocalResult] = {
            r.instruction: r for r in program.local_results if r.buffer in self._buffers
        }

    def coordinates(self, result: LocalResult) -> tuple[Indices, Indices, Indices]:
        """Block, row and column of each word that an instruction writes, in the order of `addresses`."""
        (blocks, _), (height, pitch), (width, step) = result_access(self._program, result).dims
        # Rows may have words between them; and an instruction may count the pixels of several rows as one column.
        columns = self._widths[result.buffer]
        down, across = (pitch // columns, 0) if pitch >= columns else (0, pitch)
        words = result.x + np.arange(height)[:, None] * across + np.arange(width) * step
        rows, column = np.divmod(words, columns)
        row = (result.y + np.arange(height)[:, None] * down + rows).reshape(-1)
        return (
            np.repeat(result.block + np.arange(blocks), row.size),
            np.tile(row, blocks),
            np.tile(column.reshape(-1), blocks),
        )

    def put(self, result: LocalResult, order: Indices, data: Bytes, mask: NDArray[np.bool_]) -> None:
        """Enter words, by their position among the words that the instruction writes; `mask` selects bytes."""
        buffer = self._buffers[result.buffer]
        block, y, x = (c[order] for c in self.coordinates(result))
        # Words that belong to no local tensor are not kept. Byte by byte, since a word may be written in parts.
        word, lane = np.nonzero(mask & ((block < len(buffer)) & (y < buffer.shape[1]))[:, None])
        buffer[block[word], y[word], x[word], lane] = data[word, lane]

    def tensors(self) -> dict[str, NDArray[np.int8]]:
        """All tensors that are only in the scratchpad."""
        arrays = {}
        for tensor in self._program.local_tensors:
            _, channels, height, width = tensor.shape
            blocks = channel_blocks(channels, self._program.params)
            part = self._buffers[tensor.buffer][tensor.first_block : tensor.first_block + blocks]
            lanes = part.transpose(0, 3, 1, 2).reshape(1, -1, height, width)
            arrays[tensor.name] = np.ascontiguousarray(lanes[:, :channels]).view(np.int8)
        return arrays
