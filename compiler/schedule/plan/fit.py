"""Addresses: items that are live at the same time do not overlap. All ranges are half-open."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Ranges = Sequence[tuple[int, int, int]]
"""Items as (birth, death, words)."""


def first_fit(ranges: Ranges) -> tuple[list[int], int]:
    """Addresses for items so that items alive together do not overlap, and the size of it all.

    Larger items are placed first, each at the lowest address that is free over its life.
    """
    # The index as the last key keeps the addresses, and so the program's bytes, the same in every run.
    return _first_fit(ranges, sorted(range(len(ranges)), key=lambda k: (-ranges[k][2], ranges[k][0], k)))


def tightest_fit(ranges: Ranges, size: int) -> tuple[list[int], int]:
    """The same with several orders until one needs at most `size` words; else the order that needs least."""
    items = range(len(ranges))
    area = [(death - birth) * words for birth, death, words in ranges]
    orders = (
        sorted(items, key=lambda k: (-ranges[k][2], ranges[k][0], k)),
        sorted(items, key=lambda k: (-area[k], k)),
        sorted(items, key=lambda k: (ranges[k][0], -ranges[k][2], k)),
        sorted(items, key=lambda k: (ranges[k][0] - ranges[k][1], -ranges[k][2], k)),
    )
    best: tuple[list[int], int] | None = None
    for order in orders:
        found = _first_fit(ranges, order)
        if best is None or found[1] < best[1]:
            best = found
        if best[1] <= size:
            break
    assert best is not None  # there is at least one order
    return best


def _first_fit(ranges: Ranges, order: Iterable[int]) -> tuple[list[int], int]:
    starts = [0] * len(ranges)
    placed: list[int] = []
    for item in order:
        birth, death, words = ranges[item]
        others = sorted(
            (starts[o], starts[o] + ranges[o][2]) for o in placed if ranges[o][0] < death and birth < ranges[o][1]
        )
        at = 0
        for low, high in others:
            if low - at >= words:
                break
            at = max(at, high)
        starts[item] = at
        placed.append(item)
    return starts, max((s + r[2] for s, r in zip(starts, ranges, strict=True)), default=0)
