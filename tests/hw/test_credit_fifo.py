"""The credit FIFO: a word a cycle in spite of a long pipeline, and each cycle follows the model."""

import random
from collections import deque
from itertools import product
from typing import Any

import pytest

from intloom.hw.credit_fifo import CreditFifo
from tests.hw.streams import made, run, sink


@pytest.mark.parametrize("travel", [1, 6])
def test_a_deep_fifo_passes_a_word_per_cycle(travel: int, rng: random.Random) -> None:
    queue = made(CreditFifo, 8, 8)
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


class PrefetchingFifo(CreditFifo):
    """The form whose memory is a macro."""

    def _is_macro(self, platform: object) -> bool:
        return True


@pytest.mark.parametrize("form", [CreditFifo, PrefetchingFifo])
@pytest.mark.parametrize("depth", [2, 4, 16])
def test_all_events_coincide_at_every_level(depth: int, form: type[CreditFifo], rng: random.Random) -> None:
    """Push, transfer and credit in one cycle, at every level that allows them; the outputs follow the model."""
    queue = made(form, 8, depth)
    seen: set[Coincidence] = set()
    steps: list[tuple[bool, int | None, bool]] = []
    shown: list[tuple[bool, int | None]] = []

    async def body(ctx: Any) -> None:
        in_flight = level = 0
        pushes = transfers = 0.5
        for cycle in range(1000 * depth):
            if cycle % (8 * depth) == 0:
                # So that it fills and empties.
                pushes, transfers = rng.sample((0.2, 0.5, 0.9), 2)
            free, valid = bool(ctx.get(queue.credit_available)), bool(ctx.get(queue.o.valid))
            push, ready = in_flight > 0 and rng.random() < pushes, rng.random() < transfers
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
