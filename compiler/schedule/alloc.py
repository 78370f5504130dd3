"""Memory allocators. They see numbers only; all ranges are half-open."""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Iterable, Sequence


class RotatingAllocator:
    """Next fit: each search starts where the last one ended, so that memory comes back into use as late as possible."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._live: list[tuple[int, int]] = []
        self._next = 0

    def allocate(self, words: int, low: int = 0) -> int | None:
        """The start of a free range that begins at `low` or later, or None."""
        start = self._search(words, max(low, self._next), self.size)
        if start is None:
            # The wrapped search ends behind `_next`, so that a free range that spans `_next` is found too.
            start = self._search(words, low, min(self.size, max(low, self._next) + words))
        if start is None:
            return None
        insort(self._live, (start, start + words))
        self._next = start + words
        return start

    def _search(self, words: int, low: int, high: int) -> int | None:
        at = low
        for start, end in self._live:
            if end <= at:
                continue
            # `_live` is sorted, so the first gap that is wide enough is the nearest one.
            if start - at >= words:
                break
            at = end
        return at if at + words <= high else None

    def free(self, start: int) -> None:
        """Give back the range that starts at `start`."""
        index = next(k for k, (s, _) in enumerate(self._live) if s == start)
        del self._live[index]

    def reset(self) -> None:
        """Give back everything and start at the beginning."""
        self._live.clear()
        self._next = 0


class RingAllocator:
    """A ring: ranges follow each other and wrap; space comes back when the oldest ranges are free."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._queue: deque[tuple[int, int]] = deque()
        self._dead: set[int] = set()
        self._next = 0
        self._used = 0

    @property
    def free_words(self) -> int:
        """Words that the next range may have."""
        return self.size - self._used

    def allocate(self, words: int) -> int | None:
        """The start of the next range (which may wrap), or None."""
        if self._used + words > self.size:
            return None
        start = self._next
        self._queue.append((start, words))
        self._next = (start + words) % self.size
        self._used += words
        return start

    def free(self, start: int) -> None:
        """Give back the range that starts at `start`."""
        self._dead.add(start)
        # Ranges may be freed in any order, but a ring has one gap only: space returns from the oldest end.
        while self._queue and self._queue[0][0] in self._dead:
            oldest, words = self._queue.popleft()
            self._dead.discard(oldest)
            self._used -= words

    def reset(self) -> None:
        """Give back everything and start at the beginning."""
        self._queue.clear()
        self._dead.clear()
        self._next = 0
        self._used = 0


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
