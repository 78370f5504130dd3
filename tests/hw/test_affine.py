"""The affine lane against the integer law."""

from __future__ import annotations

import random
from typing import Any

import pytest
from amaranth.sim import Simulator

from hw.affine import AffineLane
from hw.spec.arith import Affine


def _run(constants: Affine, high: bool, operands: list[tuple[int, int] | None]) -> list[int]:
    """Results of a lane that is offered one operand pair, or nothing, a cycle; checks the latency on the way."""
    lane = AffineLane()
    results: list[int] = []

    async def bench(ctx: Any) -> None:
        for name in ("m1", "m2", "c", "shift", "even"):
            ctx.set(getattr(lane, name), getattr(constants, name))
        ctx.set(lane.high, high)
        await ctx.tick()
        for cycle, pair in enumerate([*operands, *[None] * AffineLane.LATENCY]):
            expected = cycle >= AffineLane.LATENCY and operands[cycle - AffineLane.LATENCY] is not None
            assert ctx.get(lane.result_valid) == expected
            if expected:
                results.append(ctx.get(lane.result))
            ctx.set(lane.valid, pair is not None)
            if pair is not None:
                ctx.set(lane.x1, pair[0])
                ctx.set(lane.x2, pair[1])
            await ctx.tick()

    simulator = Simulator(lane)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return results


def _constants(rng: random.Random) -> Affine:
    shift = rng.choice((0, 1, 2, 24, 46, 47, rng.randrange(48)))
    size = rng.choice((4, shift, 31))
    return Affine(
        m1=rng.randrange(-(1 << size), 1 << size) if size < 31 else rng.choice((-(1 << 31), (1 << 31) - 1)),
        m2=rng.randrange(-(1 << min(size, 31)), 1 << min(size, 31)),
        c=rng.choice(
            (
                0,
                -(1 << 47),
                (1 << 47) - 1,
                rng.randrange(-(1 << 47), 1 << 47),
                rng.randrange(-99, 99) << shift & ((1 << 46) - 1),
            )
        ),
        shift=shift,
        even=rng.random() < 0.5,
    )


@pytest.mark.parametrize("seed", range(30))
def test_random_constants_follow_the_law(seed: int) -> None:
    rng = random.Random(seed)
    constants, high = _constants(rng), rng.random() < 0.5
    edges = (-512, -256, -128, -1, 0, 1, 127, 255, 511)
    operands = [
        None
        if rng.random() < 0.2
        else (rng.choice((*edges, rng.randint(-512, 511))), rng.choice((*edges, rng.randint(-512, 511))))
        for _ in range(60)
    ]
    expected = [AffineLane.model(*pair, constants, high) for pair in operands if pair is not None]
    assert _run(constants, high, operands) == expected


@pytest.mark.parametrize("even", [False, True])
@pytest.mark.parametrize("shift", range(6))
def test_every_tie_of_small_shifts(even: bool, shift: int) -> None:
    constants = Affine(m1=1, m2=1, c=0, shift=shift, even=even)
    operands: list[tuple[int, int] | None] = [(x, y) for x in range(-70, 71, 3) for y in (-33, -2, -1, 0, 1, 8)]
    results = _run(constants, False, operands)
    assert results == [AffineLane.model(*pair, constants) for pair in operands if pair is not None]
    assert len(set(results)) > 5


def test_wide_operand_is_split_in_two() -> None:
    constants = Affine(m1=1234567, m2=1234567, c=5 << 30, shift=33, even=True)
    values = [-(1 << 17), (1 << 17) - 1, -1, 0, 511, 512, -512, 65535]
    results = _run(constants, True, [(value & 511, value >> 9) for value in values])
    assert results == [AffineLane.model(value, 0, constants) for value in values]
