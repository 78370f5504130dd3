"""NormFactors: factor and offset from sums of pixels that follow each other."""

import random
from collections.abc import Iterable
from typing import Any

import pytest
from amaranth.hdl import Cat

from intloom.hw.spec.norm import EPSILON_BITS, LARGEST_COUNT, SEGMENTS, SQUARE_BITS, reciprocal_root
from intloom.hw.vector.norm_factors import NormFactors
from tests.hw.streams import made, run, set_together


def sums(rng: random.Random, count: int) -> tuple[int, int]:
    """Sum and sum of squares of some deviations: of any size, or nearly equal ones."""
    base, reach = rng.randint(-255, 255), rng.choice((0, 0, 1, 9, 255))
    few = {rng.randrange(count) for _ in range(rng.choice((1, count)))}
    d = [max(-255, min(255, base + (rng.randint(-reach, reach) if k in few else 0))) for k in range(count)]
    return sum(d), sum(v * v for v in d)


def check(
    rng: random.Random, count: int, center: bool, groups: Iterable[tuple[int, Iterable[tuple[int, int]]]]
) -> None:
    """Compare factors and offsets with the model; each group is an epsilon and the sums of its pixels."""
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
        for epsilon, pixels in groups:
            # The unit changes fields between instructions, when nothing is in flight.
            ctx.set(dut.count, count)
            ctx.set(dut.center, center)
            ctx.set(dut.epsilon, epsilon)
            await ctx.tick()
            for total, squares in pixels:
                ctx.set(dut.valid, 1)
                ctx.set(dut.total, total)
                ctx.set(dut.squares, squares)
                expected.append(NormFactors.model(count, total, squares, center, epsilon))
                await ctx.tick()
                ctx.set(dut.valid, 0)
                for _ in range(1 if rng.random() < 0.5 else rng.randint(2, 4)):
                    set_together(ctx, Cat(dut.total, dut.squares), (rng.getrandbits(32), rng.getrandbits(32)))
                    await ctx.tick()
            await ctx.tick().repeat(NormFactors.LATENCY + 2)

    run(dut, bench, background=[watch])
    assert results == expected


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("count", [1, 2, 5, 246, 777, LARGEST_COUNT])
def test_factors_of_pixels(count: int, center: bool, rng: random.Random) -> None:
    epsilons = [rng.getrandbits(rng.randint(0, EPSILON_BITS)) for _ in range(6)]
    check(rng, count, center, [(epsilon, [sums(rng, count) for _ in range(12)]) for epsilon in epsilons])


def test_both_ends_of_every_chord(rng: random.Random) -> None:
    """With a count that shows every bit of a root in the factor."""
    mantissas = [part << 4 | end for part in range(len(SEGMENTS) // 4, len(SEGMENTS)) for end in (0, 15)]
    assert NormFactors.model(LARGEST_COUNT, 0, mantissas[1], False, 0)[0] == 2 * reciprocal_root(mantissas[1] << 6)
    check(rng, LARGEST_COUNT, False, [(0, [(0, squares) for squares in rng.sample(mantissas, len(mantissas))])])


@pytest.mark.parametrize("count", [1, LARGEST_COUNT])
def test_numbers_with_one_bit(count: int, rng: random.Random) -> None:
    """From the least variance to the largest sum of squares."""
    check(rng, count, False, [(0, [(0, 1 << bit) for bit in range(SQUARE_BITS)])])
