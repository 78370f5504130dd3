"""Addresses: items that are live at the same time do not overlap. All ranges are half-open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from intloom.compiler.schedule.stages.placement import Buffer
from intloom.compiler.schedule.stages.stage import Stage

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


def live_ranges(
    stages: Iterable[Stage], slot_of: Sequence[int], first_writes: Mapping[Buffer, int]
) -> dict[Buffer, tuple[int, int]]:
    """The half-open range of slots in which each buffer is live.

    `slot_of` has the slot of each stage. `first_writes` names the slot during which a buffer is first written, where
    reordering moved that write forward.
    """
    found: dict[Buffer, tuple[int, int]] = {}
    for stage in stages:
        slot = slot_of[stage.index]
        written = [c.target.buffer for c in stage.copies] + ([stage.out.buffer] if stage.keep_result else [])
        for buffer in [*written, *(v.buffer for v in stage.operands)]:
            # Reads extend the range too: a load of the last reader must not meet the next tensor in these words.
            start, stop = found.get(buffer, (first_writes.get(buffer, slot), 0))
            found[buffer] = (min(start, slot), max(stop, slot + 1))
    return found
