"""NormFactors: factor and offset from sums of pixels that follow each other."""

import random
from typing import Any

import pytest

from intloom.hw.spec.norm import EPSILON_BITS, LARGEST_COUNT
from intloom.hw.vector.norm_factors import NormFactors
from tests.hw.streams import made, run


def sums(rng: random.Random, count: int) -> tuple[int, int]:
    """Sum and sum of squares of some deviations: of any size, or nearly equal ones."""
    base, reach = rng.randint(-255, 255), rng.choice((0, 0, 1, 9, 255))
    few = {rng.randrange(count) for _ in range(rng.choice((1, count)))}
    d = [max(-255, min(255, base + (rng.randint(-reach, reach) if k in few else 0))) for k in range(count)]
    return sum(d), sum(v * v for v in d)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("count", [1, 2, 5, 64, 777, LARGEST_COUNT])
def test_factors_of_pixels(count: int, center: bool, rng: random.Random) -> None:
    dut = made(NormFactors)
    expected: list[tuple[int, int]] = []
    results: list[tuple[int, int]] = []

    async def watch(ctx: Any) -> None:
        factor, follows = 0, False
        async for *_, valid, result in ctx.tick().sample(dut.result_valid, dut.result):
            if follows:
                results.append((factor, result))
            factor, follows = result, valid

    async def bench(ctx: Any) -> None:
        for _ in range(6):
            # The unit changes fields between instructions, when nothing is in flight.
            epsilon = rng.getrandbits(rng.randint(0, EPSILON_BITS))
            ctx.set(dut.count, count)
            ctx.set(dut.center, center)
            ctx.set(dut.epsilon, epsilon)
            await ctx.tick()
            for _ in range(12):
                total, squares = sums(rng, count)
                ctx.set(dut.valid, 1)
                ctx.set(dut.total, total)
                ctx.set(dut.squares, squares)
                expected.append(NormFactors.model(count, total, squares, center, epsilon))
                await ctx.tick()
                ctx.set(dut.valid, 0)
                await ctx.tick().repeat(1 if rng.random() < 0.5 else rng.randint(2, 4))
            await ctx.tick().repeat(NormFactors.LATENCY + 2)

    run(dut, bench, background=[watch])
    assert results == expected
