"""Sparse constants as dense ones."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

_DENSE = 0
"""The format of a level that has all its indices."""


def dense_values(sparsity: Any, values: NDArray[Any], shape: Sequence[int]) -> NDArray[Any]:
    """The dense form of a constant's stored values; `sparsity` is in the object form of the schema.

    Values are stored in the order of a loop nest. Each of its levels is a dimension, or one within a block of it. A
    level has all indices, or lists those that have values, for each index of the level around it.

    Raises
    ------
    ValueError, LookupError
        The levels contradict each other or the shape.
    """
    slots, indices, sizes = np.zeros(1, np.int64), list[NDArray[np.int64]](), list[int]()
    for level in sparsity.dimMetadata:
        if level.format == _DENSE:
            first, counts = slots * level.denseSize, np.full(len(slots), level.denseSize)
        else:
            segments = np.asarray(level.arraySegments.values, np.int64)
            first, counts = segments[slots], segments[slots + 1] - segments[slots]
        total = int(counts.sum())
        if total > prod(shape):
            raise ValueError(f"it has more than {prod(shape)} values")
        within = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
        slots = np.repeat(first, counts) + within
        own = within if level.format == _DENSE else np.asarray(level.arrayIndices.values, np.int64)[slots]
        indices = [*(np.repeat(i, counts) for i in indices), own]
        sizes.append(level.denseSize)
    levels = {int(d): n for n, d in enumerate(sparsity.traversalOrder)}
    every = [indices[levels[d]] for d in range(len(shape))]
    for number, dimension in enumerate(() if sparsity.blockMap is None else sparsity.blockMap):
        level = levels[len(shape) + number]
        every[dimension] = every[dimension] * sizes[level] + indices[level]
    dense = np.zeros(prod(shape), values.dtype)
    dense[np.ravel_multi_index(every, tuple(shape))] = values[slots]
    return dense.reshape(shape)
