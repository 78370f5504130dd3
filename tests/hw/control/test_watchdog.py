"""The watchdog: it bites after the limit, never before, and names the oldest unfinished instruction."""

from __future__ import annotations

import random
from typing import Any

import pytest

from hw.control.watchdog import CANDIDATES, Watchdog
from hw.spec.isa import COUNT_BITS, QUEUED_UNITS, Unit
from hw.spec.regs import Cause
from tests.hw.streams import run


def _simulate(body: Any, dog: Watchdog) -> None:
    run(dog, body)


@pytest.mark.parametrize("limit", [5, 40])
def test_it_bites_soon_after_the_limit_and_not_before(limit: int) -> None:
    dog = Watchdog()

    async def body(ctx: Any) -> None:
        ctx.set(dog.limit, limit)
        ctx.set(dog.running, 1)
        for _ in range(5):
            for _ in range(limit - 1):
                await ctx.tick()
            ctx.set(dog.alive, 1)
            await ctx.tick()
            ctx.set(dog.alive, 0)
            assert not ctx.get(dog.port.valid)
        cycles = 0
        while not ctx.get(dog.port.valid):
            await ctx.tick()
            cycles += 1
        assert limit <= cycles <= limit + 3

    _simulate(body, dog)


@pytest.mark.parametrize(("limit", "running"), [(0, 1), (5, 0)])
def test_it_sleeps_without_a_limit_or_a_program(limit: int, running: int) -> None:
    dog = Watchdog()

    async def body(ctx: Any) -> None:
        ctx.set(dog.limit, limit)
        ctx.set(dog.running, running)
        for _ in range(100):
            await ctx.tick()
        assert not ctx.get(dog.port.valid)

    _simulate(body, dog)


def _blamed(suspects: list[tuple[int, bool]], dispatch_index: int) -> tuple[int, Unit]:
    """Whom the watchdog blames for these suspects, of which some are present."""
    dog = Watchdog()
    blamed: list[tuple[int, Unit]] = []

    async def body(ctx: Any) -> None:
        for number, (index, present) in enumerate(suspects):
            ctx.set(dog.suspects[number], {"valid": present, "index": index})
        ctx.set(dog.dispatch_index, dispatch_index)
        ctx.set(dog.limit, 2 * CANDIDATES)
        ctx.set(dog.running, 1)
        await ctx.tick().until(dog.port.valid)
        fault = ctx.get(dog.port.fault)
        assert Cause(fault.cause) is Cause.WATCHDOG
        blamed.append((fault.index, Unit(fault.unit)))

    _simulate(body, dog)
    return blamed[0]


def test_it_blames_the_oldest_instruction(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(30):
        *indices, dispatch_index = rng.sample(range(1 << COUNT_BITS), CANDIDATES)
        suspects = [(index, rng.random() < 0.5) for index in indices]
        candidates = [(index, QUEUED_UNITS[n // 2]) for n, (index, present) in enumerate(suspects) if present]
        assert _blamed(suspects, dispatch_index) == min([*candidates, (dispatch_index, Unit.CONTROL)])
