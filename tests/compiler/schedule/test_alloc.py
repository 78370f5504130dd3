"""Allocators never hand out a word twice, and give back what they can."""

from hypothesis import given
from hypothesis import strategies as st

from intloom.compiler.schedule.emit.local_memory import RingAllocator, RotatingAllocator
from intloom.compiler.schedule.plan.residency import first_fit, tightest_fit

requests = st.lists(st.tuples(st.integers(1, 40), st.booleans()), max_size=60)


@given(st.integers(1, 100), requests)
def test_rotating_ranges_never_overlap(size, steps):
    allocator, live = RotatingAllocator(size), {}
    for words, give_back in steps:
        if give_back and live:
            start = next(iter(live))
            allocator.free(start)
            del live[start]
            continue
        start = allocator.allocate(words)
        if start is None:
            gaps = _gaps(live, size)
            assert max(gaps, default=0) < words
            continue
        assert 0 <= start <= size - words
        assert all(start + words <= s or s + n <= start for s, n in live.items())
        live[start] = words


def _gaps(live: dict[int, int], size: int) -> list[int]:
    at, gaps = 0, []
    for start in sorted(live):
        gaps.append(start - at)
        at = start + live[start]
    return [*gaps, size - at]


def test_rotating_allocator_uses_old_space_last():
    allocator = RotatingAllocator(30)
    first = allocator.allocate(10)
    allocator.free(first)
    assert [allocator.allocate(10), allocator.allocate(10), allocator.allocate(10)] == [10, 20, 0]
    assert allocator.allocate(1) is None


@given(st.integers(1, 100), requests)
def test_ring_ranges_never_overlap_and_follow_each_other(size, steps):
    ring, live, expected = RingAllocator(size), [], 0
    for words, give_back in steps:
        if give_back and live:
            ring.free(live.pop(0)[0])
            continue
        start = ring.allocate(words)
        if start is None:
            assert sum(n for _, n in live) + words > size
            continue
        assert start == expected
        expected = (start + words) % size
        taken = {(s + k) % size for s, n in live for k in range(n)}
        assert not taken & {(start + k) % size for k in range(words)}
        live.append((start, words))
    assert ring.free_words == size - sum(n for _, n in live)


def test_ring_space_freed_out_of_order_comes_back_with_the_oldest():
    ring = RingAllocator(10)
    ring.allocate(4)
    ring.allocate(4)
    ring.free(4)
    assert ring.free_words == 2
    ring.free(0)
    assert ring.free_words == 10


def test_first_fit_reuses_the_space_of_the_dead():
    assert first_fit([(0, 2, 10), (2, 4, 10), (1, 3, 5)]) == ([0, 0, 10], 15)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 5), st.integers(1, 50)), max_size=20), st.integers(1, 200))
def test_living_items_are_apart_and_the_tightest_fit_needs_no_more_than_first_fit(items, wanted):
    ranges = [(birth, birth + life, words) for birth, life, words in items]
    first, best = first_fit(ranges), tightest_fit(ranges, wanted)
    assert best[1] <= max(wanted, first[1])
    for starts, size in (first, best):
        for a, (birth_a, death_a, words_a) in enumerate(ranges):
            assert starts[a] + words_a <= size
            for b, (birth_b, death_b, words_b) in enumerate(ranges[:a]):
                if birth_a < death_b and birth_b < death_a:
                    assert starts[a] + words_a <= starts[b] or starts[b] + words_b <= starts[a]


def test_tightest_fit_finds_an_order_that_first_fit_misses():
    # The long items side by side leave no gap; by size, one of them lies above the short one.
    ranges = [(0, 9, 4), (0, 2, 6), (3, 9, 5), (1, 4, 1)]
    assert tightest_fit(ranges, 0)[1] <= first_fit(ranges)[1]


def test_rotating_allocator_respects_a_lower_bound():
    allocator = RotatingAllocator(30)
    assert [allocator.allocate(5, 10), allocator.allocate(10, 10), allocator.allocate(10, 10)] == [10, 15, None]
