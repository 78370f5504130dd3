"""The affine lane against its fixed-point semantics."""

import random
from dataclasses import replace
from typing import Any

import pytest
from amaranth.hdl import Module, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.affine import AFFINE_LAYOUT, PREPARED_LAYOUT, AffineConstants, AffineLane
from intloom.hw.spec.arith import Affine
from tests.hw.idle import check_idle
from tests.hw.streams import made, run

WIDE = 18
FACTOR_SIZE, CONSTANT_SIZE, LARGEST_SHIFT = 24, 43, 43
"""Of the instruction table: bits of factors and constants without their signs."""


class Lane(wiring.Component):
    """A lane with the constants as the affine operation has them."""

    def __init__(self, bits: int, wide: bool) -> None:
        self._lane = AffineLane(wide, bits, bits)
        members = {"operation": In(AFFINE_LAYOUT), "valid": In(1), "x1": In(signed(bits)), "x2": In(signed(bits))}
        super().__init__({**members, "result_valid": Out(1), "result": Out(signed(8))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.lane = lane = self._lane
        m.submodules.constants = constants = AffineConstants()
        m.d.comb += [
            *(getattr(lane, name).eq(getattr(self, name)) for name in ("valid", "x1", "x2")),
            constants.operation.eq(self.operation),
            lane.constants.eq(constants.prepared),
            self.result_valid.eq(lane.result_valid),
            self.result.eq(lane.result),
        ]
        return m


def _run(constants: Affine, operands: list[tuple[int, int] | None], bits: int = WIDE) -> list[int]:
    """Results of both forms of a lane that are offered one operand pair, or nothing, a cycle; checks the latency."""
    results, others = (_run_form(constants, operands, Lane(bits, wide)) for wide in (False, True))
    assert results == others
    return results


def _run_form(constants: Affine, operands: list[tuple[int, int] | None], lane: Lane) -> list[int]:
    results: list[int] = []

    async def bench(ctx: Any) -> None:
        ctx.set(lane.operation, {name: getattr(constants, name) for name in AFFINE_LAYOUT.members})
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

    run(lane, bench)
    return results


def _constants(rng: random.Random) -> Affine:
    shift = rng.choice((0, 1, 2, 24, LARGEST_SHIFT - 1, LARGEST_SHIFT, rng.randrange(LARGEST_SHIFT + 1)))
    size = min(rng.choice((4, shift, FACTOR_SIZE)), FACTOR_SIZE)
    factors = range(-(1 << size), 1 << size)
    constants = range(-(1 << CONSTANT_SIZE), 1 << CONSTANT_SIZE)
    return Affine(
        m1=rng.choice(factors) if size < FACTOR_SIZE else rng.choice((factors[0], factors[-1])),
        m2=rng.choice(factors),
        c=rng.choice(
            (
                0,
                constants[0],
                constants[-1],
                rng.choice(constants),
                rng.randrange(-99, 99) << shift & ((1 << CONSTANT_SIZE - 1) - 1),
            )
        ),
        shift=shift,
        even=rng.random() < 0.5,
    )


def test_constants_of_every_shift_are_prepared_in_time(rng: random.Random) -> None:
    prepared = made(AffineConstants)

    async def bench(ctx: Any) -> None:
        for shift in range(LARGEST_SHIFT + 1):
            affine = replace(_constants(rng), shift=shift)
            ctx.set(prepared.operation, {name: getattr(affine, name) for name in AFFINE_LAYOUT.members})
            await ctx.tick().repeat(AffineConstants.LATENCY)
            found = ctx.get(prepared.prepared)
            assert {name: found[name] for name in PREPARED_LAYOUT.members} == AffineConstants.model(affine)

    run(prepared, bench)


@pytest.mark.parametrize("bits", [8, WIDE])
@pytest.mark.parametrize("seed", range(30))
def test_random_constants_follow_the_semantics(seed: int, bits: int) -> None:
    rng = random.Random(seed)
    constants = _constants(rng)
    end = 1 << (bits - 1)
    edges = (-end, 1 - end, -128, -1, 0, 1, 127, end - 1)
    operands = [
        None if rng.random() < 0.2 else (rng.choice((*edges, rng.randrange(-end, end))), rng.randrange(-end, end))
        for _ in range(60)
    ]
    expected = [AffineLane.model(*pair, constants) for pair in operands if pair is not None]
    assert _run(constants, operands, bits) == expected


@pytest.mark.parametrize("even", [False, True])
@pytest.mark.parametrize("shift", [*range(9), 15, 16, 17, 24, 25, 31, 32])
def test_every_tie_follows_the_semantics(even: bool, shift: int) -> None:
    """Halves, their neighbors and whole numbers around zero and around both ends."""
    constants = Affine(m1=1 << min(max(0, shift - 1), FACTOR_SIZE - 1), m2=1, c=0, shift=shift, even=even)
    unit = 1 << max(0, shift - FACTOR_SIZE)
    values = [*range(-265, -249), *range(-9, 10), *range(249, 266)]
    operands: list[tuple[int, int] | None] = [(v * unit, y) for v in values for y in (-1, 0, 1)]
    results = _run(constants, operands)
    assert results == [AffineLane.model(*pair, constants) for pair in operands if pair is not None]
    assert {-128, 127, 0, 1} <= set(results)


def test_results_reach_everywhere() -> None:
    """The shift, at every position that the factors reach, with results that are neither clamped nor zero.

    Sums with one bit that differs from the sign are outside the byte's range for that bit alone.
    """
    for shift in range(FACTOR_SIZE + 10):
        size = min(shift, FACTOR_SIZE - 1)
        constants = Affine(m1=1 << size, m2=0, c=0, shift=shift)
        operands: list[tuple[int, int] | None] = [(x << shift - size, 0) for x in (-128, -77, -1, 0, 1, 99, 127)]
        single = [(x ^ 1 << bit, 0) for bit in range(WIDE - 1) for x in (0, -1)]
        expected = [-128, -77, -1, 0, 1, 99, 127, *(AffineLane.model(*pair, constants) for pair in single)]
        assert _run(constants, [*operands, *single]) == expected, shift


@pytest.mark.parametrize("wide", [False, True])
def test_every_bit_of_the_constant_counts(wide: bool) -> None:
    """The constant alone is 1 and -1, after a shift to each of its bits."""
    lane = Lane(WIDE, wide)
    for bit in range(CONSTANT_SIZE):
        for sign in (1, -1):
            assert _run_form(Affine(m1=0, m2=0, c=sign << bit, shift=bit), [(0, 0)], lane) == [sign], bit


@pytest.mark.parametrize("wide", [False, True])
def test_registers_keep_their_values_without_work(wide: bool, rng: random.Random) -> None:
    check_idle(AffineLane(wide), rng, "valid")
