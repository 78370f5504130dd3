"""What waits guarantee, and which accesses conflict."""

import random

import pytest

from intloom.common.errors import ProgramError
from intloom.compiler.program.footprint import Access, Memory, addresses
from intloom.compiler.program.hazards import AccessTracker, Order
from intloom.hw.spec.isa import QUEUED_UNITS, Unit
from intloom.hw.spec.params import preset


def span(memory: Memory, start: int, stop: int, *, write: bool) -> Access:
    return Access(memory, write, start, ((stop - start, 1),))


@pytest.fixture
def tracker() -> AccessTracker:
    return AccessTracker(preset("base"), 1000)


def test_reader_waits_for_the_last_writer_of_any_word(tracker):
    for number, start in enumerate((0, 10, 20), 1):
        tracker.record(Unit.LOAD, number, [span(Memory.SCRATCH, start, start + 10, write=True)])
    assert tracker.conflicts(Unit.MAC, [span(Memory.SCRATCH, 5, 15, write=False)]) == (2, 0, 0, 0)
    assert tracker.conflicts(Unit.MAC, [span(Memory.SCRATCH, 30, 40, write=False)]) == (0, 0, 0, 0)


def test_writer_waits_for_readers_and_writers_of_other_units(tracker):
    tracker.record(Unit.MAC, 4, [span(Memory.SCRATCH, 0, 8, write=False)])
    tracker.record(Unit.STORE, 2, [span(Memory.SCRATCH, 7, 9, write=False)])
    tracker.record(Unit.VEC, 3, [span(Memory.SCRATCH, 8, 9, write=True)])
    assert tracker.conflicts(Unit.LOAD, [span(Memory.SCRATCH, 7, 10, write=True)]) == (0, 4, 3, 2)


def test_inside_mac_only_reading_a_result_waits(tracker):
    tracker.record(Unit.MAC, 1, [span(Memory.SCRATCH, 0, 4, write=False), span(Memory.SCRATCH, 4, 8, write=True)])
    assert tracker.conflicts(Unit.MAC, [span(Memory.SCRATCH, 0, 8, write=True)]) == (0, 0, 0, 0)
    assert tracker.conflicts(Unit.MAC, [span(Memory.SCRATCH, 7, 8, write=False)]) == (0, 1, 0, 0)


def test_stores_to_one_word_wait_for_each_other(tracker):
    tracker.record(Unit.STORE, 1, [span(Memory.DRAM, 0, 4, write=True)])
    assert tracker.conflicts(Unit.STORE, [span(Memory.DRAM, 3, 5, write=True)]) == (0, 0, 0, 1)


def test_weight_accesses_wrap(tracker):
    size = preset("base").weight_words
    tracker.record(Unit.LOAD, 1, [span(Memory.WEIGHT, size - 2, size + 3, write=True)])
    assert tracker.conflicts(Unit.MAC, [span(Memory.WEIGHT, 2, 3, write=False)]) == (1, 0, 0, 0)
    assert tracker.conflicts(Unit.MAC, [span(Memory.WEIGHT, 3, 9, write=False)]) == (0, 0, 0, 0)


def test_accesses_outside_a_memory_are_refused(tracker):
    with pytest.raises(ProgramError, match="scratch word 16384 is outside its 8192 words"):
        tracker.conflicts(Unit.MAC, [span(Memory.SCRATCH, 16380, 16385, write=False)])


@pytest.mark.parametrize("memory", [Memory.DRAM, Memory.SCRATCH])
@pytest.mark.parametrize("write", [False, True])
def test_an_access_may_end_with_the_last_word(tracker, memory, write):
    size = tracker.sizes[memory]
    tracker.conflicts(Unit.LOAD, [span(memory, size - 2, size, write=write)])
    with pytest.raises(ProgramError, match=f"word {size} is outside its {size} words"):
        tracker.conflicts(Unit.LOAD, [span(memory, size - 2, size + 1, write=write)])


def test_strided_accesses_touch_only_their_words(tracker):
    tracker.record(Unit.LOAD, 1, [Access(Memory.SCRATCH, True, 0, ((4, 10), (2, 1)))])
    assert tracker.conflicts(Unit.MAC, [span(Memory.SCRATCH, 2, 10, write=False)]) == (0, 0, 0, 0)
    assert tracker.conflicts(Unit.MAC, [span(Memory.SCRATCH, 31, 32, write=False)]) == (1, 0, 0, 0)


def test_uninitialized_words_are_found(tracker):
    tracker.mark_initialized(span(Memory.DRAM, 0, 10, write=False))
    assert tracker.uninitialized(span(Memory.DRAM, 0, 10, write=False)) is None
    assert tracker.uninitialized(span(Memory.DRAM, 5, 15, write=False)) == 10
    assert tracker.conflicts(Unit.LOAD, [span(Memory.DRAM, 0, 10, write=False)]) == (0, 0, 0, 0)


def test_waits_imply_what_their_instructions_waited_for():
    order = Order()
    order.append(Unit.LOAD, (0, 0, 0, 0))
    order.append(Unit.MAC, (1, 0, 0, 0))
    assert order.known(Unit.STORE, (0, 1, 0, 0)) == (1, 1, 0, 0)
    assert order.needed_waits(Unit.STORE, (1, 1, 0, 0)) == (0, 1, 0, 0)


def test_a_unit_keeps_what_its_earlier_instructions_waited_for_but_not_their_ends():
    order = Order()
    order.append(Unit.LOAD, (0, 0, 0, 0))
    order.append(Unit.MAC, (1, 0, 0, 0))
    assert order.known(Unit.MAC, (0, 0, 0, 0)) == (1, 0, 0, 0)


@pytest.mark.parametrize("instructions", [8] * 20 + [100])
def test_random_waits_guarantee_what_follows_from_them_and_no_more(rng, instructions):
    """Of the instructions as sets; what an instruction needs is waited for, and no wait follows from the others."""
    order, finished = Order(), {unit: [set[tuple[Unit, int]]()] for unit in QUEUED_UNITS}

    def guaranteed(unit: Unit, waits: tuple[int, ...]) -> set[tuple[Unit, int]]:
        ended = ({(u, k + 1) for k in range(n)} | finished[u][n] for u, n in zip(QUEUED_UNITS, waits, strict=True))
        return finished[unit][-1].union(*ended)

    def counts(done: set[tuple[Unit, int]]) -> tuple[int, ...]:
        return tuple(sum(u is unit for u, _ in done) for unit in QUEUED_UNITS)

    for _ in range(instructions):
        unit = rng.choice(QUEUED_UNITS)
        need = tuple(rng.choice((0, rng.randint(0, order.count(u)))) for u in QUEUED_UNITS)
        waits = order.needed_waits(unit, need)
        done = guaranteed(unit, waits)
        assert order.known(unit, waits) == counts(done)
        assert all(map(int.__ge__, counts(done), need))
        for k in (k for k in range(len(waits)) if waits[k]):
            fewer = counts(guaranteed(unit, (*waits[:k], 0, *waits[k + 1 :])))
            assert waits[k] == need[k] > fewer[k]
        order.append(unit, waits)
        finished[unit].append(done)


USERS = {
    # Units that write, and that read.
    Memory.DRAM: ((Unit.STORE,), (Unit.LOAD,)),
    Memory.SCRATCH: ((Unit.LOAD, Unit.MAC, Unit.VEC), (Unit.MAC, Unit.VEC, Unit.STORE)),
    Memory.WEIGHT: ((Unit.LOAD,), (Unit.MAC,)),
}


def random_access(rng: random.Random) -> tuple[Unit, Access]:
    """A few words near each other; those of the weight memory are the last and the first."""
    memory, write = rng.choice(list(Memory)), rng.random() < 0.5
    base = rng.randrange(12) + (preset("base").weight_words - 14 if memory is Memory.WEIGHT else 0)
    dims = ((rng.randint(1, 3), rng.randrange(8)), (rng.randint(1, 2), rng.randrange(6)), (rng.randint(1, 5), 1))
    return rng.choice(USERS[memory][not write]), Access(memory, write, base, dims)


@pytest.mark.parametrize("number", range(30))
def test_conflicts_are_those_of_the_words_one_by_one(seed, number):
    rng, tracker = random.Random(f"{seed} {number}"), AccessTracker(preset("base"), 100)
    counts = dict.fromkeys(QUEUED_UNITS, 0)
    last: dict[tuple[Memory, int, Unit, bool], int] = {}
    written: set[tuple[Memory, int]] = set()
    for _ in range(25):
        unit, access = random_access(rng)
        words = [int(w) % tracker.sizes[access.memory] for w in addresses(access)]
        needs = []
        for other in QUEUED_UNITS:
            before = [
                last.get((access.memory, word, other, wrote), 0)
                for word in words
                for wrote in (True, False)
                # Two reads are no hazard. The array and the vector unit keep their own writes in order.
                if (access.write or wrote) and not (other is unit and access.write and unit in (Unit.MAC, Unit.VEC))
            ]
            needs.append(max(before, default=0))
        assert tracker.conflicts(unit, [access]) == tuple(needs), (unit, access)
        blank = next((w for w in words if (access.memory, w) not in written), None)
        assert tracker.uninitialized(access) == blank, access
        counts[unit] += 1
        tracker.record(unit, counts[unit], [access])
        last |= {(access.memory, word, unit, access.write): counts[unit] for word in words}
        if access.write:
            written |= {(access.memory, word) for word in words}


def test_one_run_of_the_weight_memory_is_at_most_all_of_it(tracker):
    size = preset("base").weight_words
    assert tracker.conflicts(Unit.MAC, [span(Memory.WEIGHT, 5, 5 + size, write=False)]) == (0, 0, 0, 0)
    with pytest.raises(ProgramError, match=rf"weight word {size + 5} is outside its {size} words"):
        tracker.conflicts(Unit.MAC, [span(Memory.WEIGHT, 5, 6 + size, write=False)])
