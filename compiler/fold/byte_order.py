"""Order of values: where the values of the model lie in a tensor of the graph, for movement without instructions.

A Transpose, Split or Reshape of a tensor in another order than the model's moves no byte. It is recorded as an array of
positions: `positions[i, j, …]` is the position of a value in the row-major order of the tensor. An operator that needs
the values in the model's order, or matrices of channels and pixels, finds them in the positions.
"""

from dataclasses import dataclass
from itertools import pairwise
from math import prod

import numpy as np
from numpy.typing import NDArray

from intloom.compiler.refusals import Refusal

Positions = NDArray[np.int64]

MOST_RUNS = 64
"""Most runs of channels that are joined; more would cost too many copies."""


@dataclass(frozen=True, eq=False)
class Ordered:
    """A value of the model whose bytes are those of a tensor, in some order."""

    tensor: str
    positions: Positions

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape in the model."""
        return tuple(self.positions.shape)


def is_permutation(positions: Positions) -> bool:
    """Whether the positions are all numbers below their count."""
    seen = np.zeros(positions.size, bool)
    seen[positions] = True
    return bool(seen.all())


def row_major(tensor: str, shape: tuple[int, ...]) -> Ordered:
    """All values of a tensor in its own order."""
    return Ordered(tensor, np.arange(prod(shape), dtype=np.int64).reshape(shape))


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of values that are pixels: value k of row r is in channel `channels[k]` of pixel `pixels[r]`."""

    channels: Positions
    pixels: Positions


def as_rows(positions: Positions, pixels: int) -> Rows | None:
    """Rows (the first axis) that are pixels of a tensor with this number of pixels; None if they are not."""
    rows = Rows(positions[0] // pixels, positions[:, 0] % pixels)
    same = np.array_equal(positions, rows.channels * pixels + rows.pixels[:, None])
    return rows if same else None


@dataclass(frozen=True, eq=False)
class Windows:
    """Rows of values that are windows of an image, which slide over all of it."""

    taps: tuple[Positions, Positions, Positions]
    """For each value of a row its channel, and its row and column in the window."""
    kernel: tuple[int, int]
    strides: tuple[int, int]
    counts: tuple[int, int]
    pixels: Positions
    """For each row the number of its window."""


def as_windows(positions: Positions, size: tuple[int, int]) -> Windows | None:
    """Rows (the first axis) that are windows of a tensor of this height and width; None if they are not."""
    channels, pixels = np.divmod(positions, prod(size))
    coordinates = np.divmod(pixels, size[1])
    starts = [c.min(axis=1) for c in coordinates]
    taps = (channels, *(c - s[:, None] for c, s in zip(coordinates, starts, strict=True)))
    if any((tap != tap[0]).any() for tap in taps) or len(np.unique(positions[0])) != positions.shape[1]:
        return None
    kernel, strides, counts = [], [], []
    for tap, start, length in zip(taps[1:], starts, size, strict=True):
        lines = np.unique(start)
        kernel.append(int(tap.max()) + 1)
        strides.append(int(lines[1] - lines[0]) if len(lines) > 1 else 1)
        counts.append((length - kernel[-1]) // strides[-1] + 1)
        if not np.array_equal(lines, np.arange(counts[-1]) * strides[-1]):
            return None
    numbers = starts[0] // strides[0] * counts[1] + starts[1] // strides[1]
    if numbers.size != prod(counts) or not is_permutation(numbers):
        return None
    first = (taps[0][0], taps[1][0], taps[2][0])
    return Windows(first, (kernel[0], kernel[1]), (strides[0], strides[1]), (counts[0], counts[1]), numbers)


def channel_runs(positions: Positions, pixels: int) -> list[tuple[int, int]] | None:
    """Whole channels in the order of the positions, as runs (first, stop); None if channels are not whole."""
    if not positions.size or positions.size % pixels:
        return None
    rows = positions.reshape(-1, pixels)
    starts = rows[:, 0]
    if (starts % pixels).any() or not np.array_equal(rows, starts[:, None] + np.arange(pixels)):
        return None
    return runs_of(starts // pixels)


def runs_of(channels: Positions) -> list[tuple[int, int]] | None:
    """Channels, in this order, as runs (first, stop); None if there are too many."""
    cuts = [0, *(np.flatnonzero(np.diff(channels) != 1) + 1).tolist(), len(channels)]
    runs = [(int(channels[a]), int(channels[b - 1]) + 1) for a, b in pairwise(cuts)]
    return runs if len(runs) <= MOST_RUNS else None


def block_sources(positions: Positions, size: tuple[int, int]) -> Positions | None:
    """For each channel, row and column in a block the channel of a smaller tensor with those pixels of all blocks.

    The tensor, of height and width `size`, has a pixel for each block of the image. None if there are no such blocks.
    """
    if positions.ndim != 4 or len(positions) != 1:
        return None
    _, channels, *image = positions.shape
    rows, columns = (n // m for n, m in zip(image, size, strict=True))
    if image != [size[0] * rows, size[1] * columns]:
        return None
    blocks = positions.reshape(channels, size[0], rows, size[1], columns).transpose(0, 2, 4, 1, 3)
    pixels = np.arange(prod(size)).reshape(size)
    sources = blocks[..., 0, 0] // prod(size)
    return sources if np.array_equal(blocks, sources[..., None, None] * prod(size) + pixels) else None


@dataclass(frozen=True, eq=False)
class Matrices:
    """Matrices of one shape in a tensor, of which one axis is channels and the other all pixels."""

    tensor: str
    channels: tuple[tuple[int, int], ...]
    """For each matrix its channels (first, stop)."""
    rows_are_channels: bool


def matrices(ordered: Ordered, pixels: int) -> Matrices:
    """The matrices over the last two axes.

    Raises
    ------
    UnsupportedPattern
        Neither axis counts pixels.
    """
    shape = ordered.shape
    if len(shape) < 2 or 0 in shape:
        raise Refusal.DIMENSIONS(f"its operand has shape {shape}", "multiply matrices")
    each = ordered.positions.reshape(-1, *shape[-2:])
    for turned in (False, True):
        runs_of_each = [channel_runs(m.T if turned else m, pixels) for m in each]
        wide = shape[-2 if turned else -1] == pixels
        ranges = [runs[0] for runs in runs_of_each if runs is not None and len(runs) == 1]
        if wide and len(ranges) == len(each):
            return Matrices(ordered.tensor, tuple(ranges), not turned)
    raise Refusal.ORDER(
        f"its operand of shape {shape} is not made of channels and pixels of one tensor",
        "reshape and transpose images only by whole channels",
    )
