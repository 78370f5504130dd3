"""Layouts: TFLite stores images with channels last, the importer with channels first.

A `View` says that a tensor of the file is a value of the model with its dimensions in another order. A Transpose of the
file only changes this order; a Transpose of the model is needed where an operator requires an order that its operand
does not have.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

Order = tuple[int, ...]

CHANNELS_FIRST: Order = (0, 2, 3, 1)
"""Order of an image of the file whose value has the channels first: dimension i of the file is dimension order[i]."""


@dataclass(frozen=True)
class View:
    """A tensor of the file as a stored value of the model: `tensor == transpose(value, order)`."""

    value: str
    order: Order

    @property
    def plain(self) -> bool:
        """Whether the value has the dimensions of the file in their order."""
        return self.order == identity(len(self.order))


def identity(rank: int) -> Order:
    """The order that changes nothing."""
    return tuple(range(rank))


def inverse(order: Order) -> Order:
    """The order that undoes `order`."""
    return tuple(order.index(i) for i in range(len(order)))


def permuted(values: Sequence[int], order: Order) -> tuple[int, ...]:
    """Values of the dimensions, in another order."""
    return tuple(values[i] for i in order)


def reshaped(before: Sequence[int], after: Sequence[int], order: Order) -> tuple[tuple[int, ...], Order] | None:
    """The shape of the value and its order after a Reshape of the tensor, if the value itself can be reshaped.

    A Reshape splits and joins neighboring dimensions. It can be done on the value if each group of dimensions that
    belong together is together, and in the same order, in the value too. The result is None if one is not.
    """
    groups = _groups(before, after)
    if groups is None:
        return None
    # Dimensions of size 1 carry no values, so their position does not matter.
    wide = [[d for d in old if before[d] != 1] for old, _ in groups]
    positions = [[order[d] for d in old] for old in wide]
    value_shape = permuted(before, inverse(order))
    moving = [axis for axis in range(len(order)) if value_shape[axis] != 1]
    ranks = {axis: rank for rank, axis in enumerate(moving)}
    for axes in positions:
        if any(ranks[b] != ranks[a] + 1 for a, b in pairwise(axes)):
            return None
    # Groups without values stay beside the group before them.
    keys, last = [], -1
    for axes in positions:
        last = axes[0] if axes else last
        keys.append(last)
    sequence = sorted(range(len(groups)), key=lambda g: (keys[g], g))
    new_axes = [d for g in sequence for d in groups[g][1]]
    return tuple(after[d] for d in new_axes), tuple(new_axes.index(d) for d in range(len(after)))


def _groups(before: Sequence[int], after: Sequence[int]) -> list[tuple[list[int], list[int]]] | None:
    """The smallest groups of neighboring dimensions of both shapes with equal products; None without values."""
    if 0 in (*before, *after):
        return None
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(before) or j < len(after):
        old: list[int] = []
        new: list[int] = []
        left = right = 1
        while True:
            if left <= right and i < len(before) and (left < right or not old):
                left *= before[i]
                old.append(i)
                i += 1
            elif j < len(after) and (right < left or not new):
                right *= after[j]
                new.append(j)
                j += 1
            else:
                break
        if left != right:
            return None
        groups.append((old, new))
    return groups
