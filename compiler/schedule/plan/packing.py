"""Addresses of items with lifetimes: each item gets the lowest one that is free over its life.

Items are placed one after the other, so an item depends on those before it that are alive at the same time. When items
come or go, only the addresses that depend on them are computed again.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Generic, NamedTuple, TypeVar

Item = TypeVar("Item", bound=Hashable)


class Span(NamedTuple):
    """The slots in which an item is alive, `stop` excluded, and its words."""

    birth: int
    stop: int
    words: int


_ORDERS: tuple[Callable[[Span], tuple[int, ...]], ...] = (
    lambda s: (-s.words, s.birth),
    lambda s: ((s.birth - s.stop) * s.words,),
    lambda s: (s.birth, -s.words),
    lambda s: (s.birth - s.stop, -s.words),
)
"""Larger items first, larger areas first, earlier births first, and longer lives first."""


class Packing(Generic[Item]):
    """Items of one memory, which come and go, and their addresses in several orders."""

    def __init__(self, spans: Mapping[Item, Span] | None = None) -> None:
        self._near: dict[Item, set[Item]] = {}
        """The items that are alive at the same time as each one."""
        self._alive: defaultdict[int, set[Item]] = defaultdict(set)
        """The items that are alive in each slot."""
        self._spans: dict[Item, Span] = {}
        self._numbers = count()
        self._fits = [_FirstFit(order, self._near, self._spans) for order in _ORDERS]
        for item, span in (spans or {}).items():
            self.add(item, span)

    def __iter__(self) -> Iterator[Item]:
        """The items, in the order in which they came."""
        return iter(self._spans)

    def add(self, item: Item, span: Span) -> None:
        """Add an item."""
        slots = range(span.birth, span.stop)
        near = self._near[item] = set[Item]().union(*(self._alive[slot] for slot in slots))
        for other in near:
            self._near[other].add(item)
        for slot in slots:
            self._alive[slot].add(item)
        self._spans[item] = span
        number = next(self._numbers)
        for fit in self._fits:
            fit.add(item, number)

    def remove(self, item: Item) -> None:
        """Remove an item."""
        for fit in self._fits:
            fit.remove(item)
        span = self._spans.pop(item)
        for slot in range(span.birth, span.stop):
            self._alive[slot].remove(item)
        for other in self._near.pop(item):
            self._near[other].remove(item)

    def first_fit(self) -> tuple[Mapping[Item, int], int]:
        """Addresses with larger items first, and the words of it all."""
        return self._fits[0].update()

    def tightest_fit(self, size: int) -> tuple[Mapping[Item, int], int]:
        """The same with several orders until one needs at most `size` words; else the order that needs least."""
        best = self.first_fit()
        for fit in self._fits[1:]:
            if best[1] <= size:
                break
            best = min(best, fit.update(), key=lambda found: found[1])
        return best


class _FirstFit(Generic[Item]):
    """Addresses in one order."""

    def __init__(
        self, order: Callable[[Span], tuple[int, ...]], near: Mapping[Item, set[Item]], spans: Mapping[Item, Span]
    ) -> None:
        self._order = order
        self._near = near
        self._spans = spans
        self._ranks: dict[Item, tuple[tuple[int, ...], int]] = {}
        """Positions in the order. The number of the item keeps addresses, and so programs, the same in every run."""
        self._ranges: dict[Item, tuple[int, int]] = {}
        """First word of each item, and the one after its last."""
        self._stale: set[Item] = set()
        """Items whose addresses may be others."""

    def add(self, item: Item, number: int) -> None:
        """Add an item, which is known to the packing."""
        self._ranks[item] = self._order(self._spans[item]), number
        self._stale.add(item)

    def remove(self, item: Item) -> None:
        """Remove an item, which the packing still knows."""
        rank = self._ranks[item]
        self._stale.update(other for other in self._near[item] if self._ranks[other] > rank)
        self._stale.discard(item)
        self._ranges.pop(item, None)
        del self._ranks[item]

    def update(self) -> tuple[Mapping[Item, int], int]:
        """The addresses of all items, and the words of it all."""
        ranks, stale, ranges = self._ranks, self._stale, self._ranges
        queue = [(ranks[item], item) for item in stale]
        heapify(queue)
        while queue:
            rank, item = heappop(queue)
            near = self._near[item]
            lowest = self._lowest([ranges[o] for o in near if o not in stale and ranks[o] < rank], item)
            if lowest != ranges.get(item):
                ranges[item] = lowest
                for other in near:
                    if other not in stale and ranks[other] > rank:
                        stale.add(other)
                        heappush(queue, (ranks[other], other))
            stale.remove(item)
        return {i: start for i, (start, _) in ranges.items()}, max((end for _, end in ranges.values()), default=0)

    def _lowest(self, before: list[tuple[int, int]], item: Item) -> tuple[int, int]:
        """The lowest range of addresses that is free of the items before this one."""
        words, at = self._spans[item].words, 0
        for low, high in sorted(before):
            if low - at >= words:
                break
            at = max(at, high)
        return at, at + words
