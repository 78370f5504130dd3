"""Allocators never hand out a word twice, and give back what they can."""

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from intloom.compiler.schedule.emit.local_memory import ScratchMemory, WeightMemory
from intloom.compiler.schedule.emit.tasks import BufferRequest
from intloom.compiler.schedule.plan.packing import Packing, Span

requests = st.lists(st.tuples(st.integers(1, 40), st.booleans()), max_size=60)


class Memory:
    """A local memory whose tasks have a request each, and the ranges that the program uses of it."""

    def __init__(self, kind, size, **options):
        self.made = kind(
            size, lambda task, request, first, words, start: self.loads.append((first, words, start)), **options
        )
        self.loads, self.live, self.count = [], {}, 0

    def acquire(self, words, low=0):
        """The address of a new request, or None; a new one each time, so one that waits stays."""
        request = BufferRequest(self.count, self.made.memory, words, b"weights")
        task = SimpleNamespace(requests=lambda memory: [request])
        self.count += 1
        self.made.expect([task])
        if not self.made.acquire(task, low):
            return None
        self.live[request.key] = task, words
        return self.made.address[request.key]

    def release(self, key=None):
        task, _ = self.live.pop(next(iter(self.live)) if key is None else key)
        self.made.release(task)

    @property
    def ranges(self):
        return [(self.made.address[key], words) for key, (_, words) in self.live.items()]


@given(st.integers(1, 100), requests)
def test_ranges_of_the_scratchpad_never_overlap(size, steps):
    memory = Memory(ScratchMemory, size)
    for words, give_back in steps:
        if give_back and memory.live:
            memory.release()
            continue
        before = memory.ranges
        start = memory.acquire(words)
        if start is None:
            assert max(_gaps(before, size), default=0) < words
            continue
        assert 0 <= start <= size - words
        assert all(start + words <= s or s + n <= start for s, n in before)


def _gaps(ranges, size):
    at, gaps = 0, []
    for start, words in sorted(ranges):
        gaps.append(start - at)
        at = start + words
    return [*gaps, size - at]


def test_the_scratchpad_uses_old_space_last():
    memory = Memory(ScratchMemory, 30)
    memory.acquire(10)
    memory.release()
    assert [memory.acquire(10), memory.acquire(10), memory.acquire(10)] == [10, 20, 0]
    assert memory.acquire(1) is None


def test_the_scratchpad_respects_a_lower_bound():
    memory = Memory(ScratchMemory, 30)
    assert [memory.acquire(5, 10), memory.acquire(10, 10), memory.acquire(10, 10)] == [10, 15, None]


@given(st.integers(1, 100), st.lists(st.tuples(st.integers(1, 40), st.booleans()), max_size=40))
def test_ranges_of_the_ring_never_overlap_and_follow_each_other(size, steps):
    memory, expected = Memory(WeightMemory, size), 0
    for words, give_back in steps:
        if give_back and memory.live:
            memory.release()
            continue
        before = memory.ranges
        if sum(n for _, n in before) + words > size:
            continue
        assert memory.acquire(words) == expected
        assert memory.loads[-1] == (0, words, expected)
        taken = {(s + k) % size for s, n in before for k in range(n)}
        assert not taken & {(expected + k) % size for k in range(words)}
        expected = (expected + words) % size


def test_ring_space_freed_out_of_order_comes_back_with_the_oldest():
    memory = Memory(WeightMemory, 10)
    assert [memory.acquire(4), memory.acquire(4)] == [0, 4]
    memory.release(1)
    assert memory.acquire(3) is None
    memory.release(0)
    assert memory.acquire(10) == 8


def test_a_chunk_larger_than_the_free_ring_is_loaded_in_pieces():
    memory = Memory(WeightMemory, 1000, piece=64)
    memory.acquire(500)
    request = BufferRequest("large", memory.made.memory, 900, b"weights")
    task = SimpleNamespace(requests=lambda memory: [request])
    memory.made.expect([task])
    assert not memory.made.acquire(task)
    memory.release()
    assert memory.made.acquire(task)
    assert memory.made.address["large"] == 500
    assert memory.loads[1:] == [(0, 448, 500), (448, 452, 948)]


@given(st.integers(0, 999), st.integers(0, 20), st.integers(1, 1000))
def test_the_pieces_of_a_chunk_follow_each_other_around_the_ring(before, others, words):
    """Its first piece lies where it ends up, whichever of its pieces wraps."""
    memory = Memory(WeightMemory, 1000, piece=64)
    memory.acquire(before + 1)
    memory.release()
    for _ in range(others):
        memory.acquire(45)
    first = len(memory.loads)
    request = BufferRequest("large", memory.made.memory, words, b"weights")
    task = SimpleNamespace(requests=lambda memory: [request])
    memory.made.expect([task])
    while not memory.made.acquire(task):
        memory.release()
    pieces = memory.loads[first:]
    at = memory.made.address["large"]
    assert [start for _, _, start in pieces] == [(at + done) % 1000 for done, _, _ in pieces]
    assert [done for done, _, _ in pieces] == [sum(n for _, n, _ in pieces[:k]) for k in range(len(pieces))]
    assert sum(n for _, n, _ in pieces) == words


def test_first_fit_reuses_the_space_of_the_dead():
    spans = enumerate([Span(0, 2, 10), Span(2, 4, 10), Span(1, 3, 5)])
    assert Packing(dict(spans)).first_fit() == ({0: 0, 1: 0, 2: 10}, 15)


spans = st.builds(
    lambda birth, life, words: Span(birth, birth + life, words),
    st.integers(0, 9),
    st.integers(1, 5),
    st.integers(1, 50),
)


@given(st.lists(spans, max_size=20), st.integers(1, 200))
def test_living_items_are_apart_and_the_tightest_fit_needs_no_more_than_first_fit(items, wanted):
    packing = Packing(dict(enumerate(items)))
    first, best = packing.first_fit(), packing.tightest_fit(wanted)
    assert best[1] <= max(wanted, first[1])
    for starts, size in (first, best):
        for a, one in enumerate(items):
            assert starts[a] + one.words <= size
            for b, other in enumerate(items[:a]):
                if one.birth < other.stop and other.birth < one.stop:
                    assert starts[a] + one.words <= starts[b] or starts[b] + other.words <= starts[a]


@given(st.lists(st.tuples(spans, st.integers(0, 30)), max_size=30))
def test_addresses_after_changes_are_those_of_the_remaining_items(changes):
    """Each change adds an item, or removes one."""
    packing, items = Packing(), {}
    for number, (span, victim) in enumerate(changes):
        if victim in items:
            packing.remove(victim)
            del items[victim]
        else:
            packing.add(number, span)
            items[number] = span
        assert list(packing) == list(items)
        assert packing.tightest_fit(0) == Packing(items).tightest_fit(0)


def test_tightest_fit_finds_an_order_that_first_fit_misses():
    # The long items side by side leave no gap; by size, one of them lies above the short one.
    packing = Packing(dict(enumerate([Span(0, 9, 4), Span(0, 2, 6), Span(3, 9, 5), Span(1, 4, 1)])))
    assert packing.tightest_fit(0)[1] <= packing.first_fit()[1]
