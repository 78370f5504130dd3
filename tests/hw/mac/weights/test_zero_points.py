"""Zero points against plain subtraction, cycle by cycle."""

import random
from collections import deque
from typing import Any

import pytest

from intloom.hw.mac.weights.zero_points import ZeroPoints
from intloom.hw.spec.params import HardwareParams
from tests.hw.mac.shapes import WEIGHT_SHAPES
from tests.hw.streams import made, run

_LIMITS = (-128, -1, 0, 1, 127)


def _bytes(rng: random.Random, count: int) -> list[int]:
    return [rng.choice((*_LIMITS, rng.randint(-128, 127))) for _ in range(count)]


class Feed:
    """Gives words, and compares what comes out with what has to."""

    def __init__(self, ctx: Any, unit: ZeroPoints, params: HardwareParams) -> None:
        self.ctx, self.unit, self.params = ctx, unit, params
        self.expected: deque[tuple[int, list[int]]] = deque([(0, [])] * ZeroPoints.LATENCY)
        self.compared = 0

    async def word(self, values: list[int], result: tuple[int, list[int]] = (0, []), **signals: int) -> None:
        """One cycle; the outputs `LATENCY` cycles later are `result`: load and weights."""
        ctx, unit = self.ctx, self.unit
        ctx.set(unit.word, int.from_bytes(bytes(v & 255 for v in values), "little"))
        for name in ("store", "clear", "load_next"):
            ctx.set(getattr(unit, name), signals.get(name, 0))
        self.expected.append(result)
        load, weights = self.expected.popleft()
        assert ctx.get(unit.load) == load
        if load:
            assert [ctx.get(unit.weights[row]) for row in range(self.params.rows)] == weights
            self.compared += 1
        await ctx.tick()

    async def tile(self, rng: random.Random, zero_points: list[int]) -> None:
        """A tile's words in succession, after the cycle that announces the first one."""
        await self.word(_bytes(rng, self.params.rows), load_next=1)
        for column, zero_point in enumerate(zero_points):
            values, following = _bytes(rng, self.params.rows), 2 << column & (1 << self.params.cols) - 1
            result = 1 << column, ZeroPoints.model(values, zero_point)
            await self.word(values, result, load_next=following)


@pytest.mark.parametrize("name", WEIGHT_SHAPES)
def test_the_block_s_zero_points_are_subtracted(name: str, rng: random.Random) -> None:
    params = WEIGHT_SHAPES[name]
    unit = made(ZeroPoints, params)
    some = _bytes(rng, params.zero_point_words * params.rows)
    # Each bit of each column is set in one of the two, and cleared after both.
    others = [~value for value in some]

    async def bench(ctx: Any) -> None:
        feed = Feed(ctx, unit, params)
        for zero_points in (some, others, None, some, None):
            if zero_points:
                for number in range(params.zero_point_words):
                    await feed.word(zero_points[number * params.rows :][: params.rows], store=1 << number)
            else:
                await feed.word(_bytes(rng, params.rows), clear=1)
            for _ in range(2):
                await feed.tile(rng, (zero_points or [0] * params.cols)[: params.cols])
        await feed.word(_bytes(rng, params.rows))
        assert feed.compared == 5 * 2 * params.cols

    run(unit, bench)
