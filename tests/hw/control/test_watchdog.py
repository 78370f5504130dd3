"""The watchdog: it bites after the limit, never before, and names the oldest unfinished instruction."""

from __future__ import annotations

import random
from typing import Any

import pytest

from hw.control.watchdog import Watchdog
from hw.spec.isa import QUEUED_UNITS, Unit
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


def _blamed(indices: list[int], present: list[bool]) -> tuple[int, Unit]:
    """Whom the watchdog blames when the units that are `present` are at `indices`; the last index is dispatch's."""
    dog = Watchdog()
    blamed: list[tuple[int, Unit]] = []

    async def body(ctx: Any) -> None:
        for unit in QUEUED_UNITS:
            ctx.set(dog.suspects[unit], {"valid": present[unit], "index": indices[unit]})
        ctx.set(dog.dispatch_index, indices[-1])
        ctx.set(dog.limit, 4)
        ctx.set(dog.running, 1)
        await ctx.tick().repeat(10)
        fault = ctx.get(dog.port.fault)
        assert Cause(fault.cause) is Cause.WATCHDOG
        blamed.append((fault.index, Unit(fault.unit)))

    _simulate(body, dog)
    return blamed[0]


def test_it_blames_the_oldest_instruction(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(30):
        indices = rng.sample(range(1000), len(QUEUED_UNITS) + 1)
        present = [rng.random() < 0.5 for _ in QUEUED_UNITS]
        candidates = [(i, u) for i, u, there in zip(indices, QUEUED_UNITS, present, strict=False) if there]
        assert _blamed(indices, present) == min([*candidates, (indices[-1], Unit.CONTROL)])
