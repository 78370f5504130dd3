"""The credit FIFO: words leave in order for every pipeline latency, and each cycle follows the model."""

import random
from collections import deque
from itertools import product
from typing import Any

import pytest

from intloom.hw.credit_fifo import CreditFifo
from tests.hw.streams import run, sink


@pytest.mark.parametrize("depth", [2, 8])
@pytest.mark.parametrize(("offer", "take"), [(1.0, 1.0), (0.4, 1.0), (1.0, 0.4), (0.6, 0.6)])
@pytest.mark.parametrize("travel", [0, 1, 5])
def test_words_leave_in_order(depth: int, offer: float, take: float, travel: int, rng: random.Random) -> None:
    queue = CreditFifo(8, depth)
    words = [rng.getrandbits(8) for _ in range(200)]
    taken: list[int] = []
    refused = 0
    steps: list[tuple[bool, int | None, bool]] = []
    shown: list[tuple[bool, int | None]] = []

    async def pipeline(ctx: Any) -> None:
        """Take credits while available; each word arrives `travel` cycles later."""
        nonlocal refused
        in_flight: deque[int | None] = deque([None] * travel)
        left = list(words)
        while left or any(word is not None for word in in_flight):
            free = ctx.get(queue.credit_available)
            reserves = bool(left) and free and rng.random() < offer
            refused += not free
            in_flight.append(left.pop(0) if reserves else None)
            word = in_flight.popleft()
            ctx.set(queue.take_credit, reserves)
            ctx.set(queue.push, word is not None)
            ctx.set(queue.word, rng.getrandbits(8) if word is None else word)
            await ctx.tick()
        ctx.set(queue.take_credit, 0)
        ctx.set(queue.push, 0)

    async def look(ctx: Any) -> None:
        port = queue.o
        watched = (
            queue.credit_available,
            queue.take_credit,
            queue.push,
            queue.word,
            port.valid,
            port.ready,
            port.payload,
        )
        async for *_, free, reserve, push, word, valid, ready, head in ctx.tick().sample(*watched):
            steps.append((bool(reserve), word if push else None, bool(ready)))
            shown.append((bool(free), head if valid else None))

    run(queue, pipeline, sink(queue.o, taken, len(words), rng, take), background=[look])
    assert taken == words
    assert shown == list(CreditFifo.model(depth, steps))
    assert refused > 0 or depth >= travel + CreditFifo.TURNAROUND


@pytest.mark.parametrize("travel", [1, 6])
def test_a_deep_fifo_passes_a_word_per_cycle(travel: int, rng: random.Random) -> None:
    queue = CreditFifo(8, 8)
    taken: list[int] = []
    cycles = 0

    async def pipeline(ctx: Any) -> None:
        nonlocal cycles
        in_flight: deque[bool] = deque([False] * travel)
        while len(taken) < 100:
            assert ctx.get(queue.credit_available)
            in_flight.append(True)
            ctx.set(queue.take_credit, 1)
            ctx.set(queue.push, in_flight.popleft())
            ctx.set(queue.word, cycles % 256)
            await ctx.tick()
            cycles += 1

    run(queue, pipeline, sink(queue.o, taken, 100, rng))
    assert cycles <= 100 + travel + CreditFifo.TURNAROUND


Coincidence = tuple[int, bool, bool, bool]
"""Level, and whether a word is pushed, a word is taken, and a credit is taken."""


def _possible(depth: int) -> set[Coincidence]:
    """All that a sender which respects its credits can do: words and words in flight are at most `depth`."""
    found = set()
    for level, in_flight in product(range(depth + 1), range(depth + 1)):
        for push, fire, take in product((False, True), repeat=3):
            if level + in_flight + take <= depth and in_flight >= push and level >= fire:
                found.add((level, push, fire, take))
    return found


@pytest.mark.parametrize("depth", [2, 4])
def test_all_events_coincide_at_every_level(depth: int, rng: random.Random) -> None:
    """Push, transfer and credit in one cycle, at every level that allows them; the outputs follow the model."""
    queue = CreditFifo(8, depth)
    seen: set[Coincidence] = set()
    steps: list[tuple[bool, int | None, bool]] = []
    shown: list[tuple[bool, int | None]] = []

    async def body(ctx: Any) -> None:
        in_flight = level = 0
        for cycle in range(4000):
            free, valid = bool(ctx.get(queue.credit_available)), bool(ctx.get(queue.o.valid))
            push, ready = in_flight > 0 and rng.random() < 0.5, rng.random() < 0.5
            take = free and rng.random() < 0.7
            shown.append((free, ctx.get(queue.o.payload) if valid else None))
            for port, value in ((queue.push, push), (queue.take_credit, take), (queue.o.ready, ready)):
                ctx.set(port, value)
            ctx.set(queue.word, cycle % 256)
            steps.append((take, cycle % 256 if push else None, ready))
            fire = valid and ready
            seen.add((level, push, fire, take))
            in_flight, level = in_flight + take - push, level + push - fire
            await ctx.tick()

    run(queue, body)
    assert shown == list(CreditFifo.model(depth, steps))
    assert seen == _possible(depth)
