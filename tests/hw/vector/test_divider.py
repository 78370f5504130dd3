"""Divider: quotients of every kind of operands."""

import random
from typing import Any

import pytest

from intloom.hw.spec.softmax import LARGEST_TOTAL, QUOTIENT_BITS
from intloom.hw.vector.divider import Divider
from tests.hw.streams import made, run
from tests.hw.vector.slices import idle_cycles, record


def _divisors(rng: random.Random) -> list[int]:
    some = [rng.getrandbits(rng.randint(1, 32)) for _ in range(20)]
    return [0, 1, 2, 3, LARGEST_TOTAL, LARGEST_TOTAL - 1, 1 << 31, *some]


def _dividends(rng: random.Random, divisor: int) -> list[int]:
    """Multiples of the divisor, their neighbors, and others."""
    limit = min((divisor << QUOTIENT_BITS) - 1, (1 << 33) - 1)
    multiples = [divisor * rng.randrange(1 << QUOTIENT_BITS) for _ in range(6)]
    near = [m + d for m in multiples for d in (-1, 0, 1)]
    return [min(max(0, n), max(0, limit)) for n in (0, limit, *near, rng.randint(0, max(0, limit)))]


def test_quotients_are_rounded_down(rng: random.Random) -> None:
    divider = made(Divider)
    found: list[int] = []
    expected: list[int] = []

    async def bench(ctx: Any) -> None:
        for divisor in _divisors(rng):
            ctx.set(divider.divisors, [divisor] * Divider.DIVISORS)
            for dividend in _dividends(rng, divisor):
                await idle_cycles(ctx, rng, divider.valid)
                ctx.set(divider.dividend, dividend)
                expected.append(Divider.model(dividend, divisor))
                await ctx.tick()
            ctx.set(divider.valid, 0)
            await ctx.tick().repeat(Divider.LATENCY)

    run(divider, bench, background=[record(divider.result_valid, divider.quotient, found)])
    assert found == expected


def test_each_part_of_the_pipeline_has_its_divisor() -> None:
    divider = made(Divider)
    found: list[int] = []

    async def bench(ctx: Any) -> None:
        divisors = (7, 1 << 30, 3)
        for step in range(len(divisors) + Divider.DIVISORS):
            for at in range(Divider.DIVISORS):
                if 0 <= step - at < len(divisors):
                    ctx.set(divider.divisors[at], divisors[step - at])
            if step < len(divisors):
                ctx.set(divider.dividend, 5 * divisors[step] + 2)
                ctx.set(divider.valid, 1)
            await ctx.tick()
            ctx.set(divider.valid, 0)
            await ctx.tick().repeat(Divider.STAGES - 1)

    run(divider, bench, background=[record(divider.result_valid, divider.quotient, found)])
    assert found == [5, 5, 5]


@pytest.mark.parametrize("divisor", [1, 5, 1 << 23, LARGEST_TOTAL])
def test_latency(divisor: int) -> None:
    divider = made(Divider)

    async def bench(ctx: Any) -> None:
        ctx.set(divider.divisors, [divisor] * Divider.DIVISORS)
        ctx.set(divider.dividend, divisor)
        ctx.set(divider.valid, 1)
        await ctx.tick()
        ctx.set(divider.valid, 0)
        await ctx.tick().repeat(Divider.LATENCY - 1)
        assert ctx.get(divider.result_valid)
        assert ctx.get(divider.quotient) == 1
        await ctx.tick()
        assert not ctx.get(divider.result_valid)

    run(divider, bench)
