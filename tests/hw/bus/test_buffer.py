"""The stream buffer: order, no loss, full rate."""

from __future__ import annotations

import random

import pytest

from hw.bus.buffer import StreamBuffer
from tests.hw.streams import run, sink, source


@pytest.mark.parametrize("rates", [(1.0, 1.0), (0.5, 1.0), (1.0, 0.5), (0.6, 0.6)])
def test_nothing_is_lost_or_reordered(rates: tuple[float, float], seed: int) -> None:
    rng = random.Random(seed)
    items = [rng.getrandbits(8) for _ in range(300)]
    buffer = StreamBuffer(8)
    taken: list[int] = []
    run(
        buffer, source(buffer.i, items, rng, rates[0]), sink(buffer.o, taken, len(items), rng, rates[1]),
    )  # fmt: skip
    assert taken == items


def test_an_item_passes_every_cycle() -> None:
    buffer = StreamBuffer(8)
    cycles = 0

    async def count(ctx) -> None:
        nonlocal cycles
        while len(taken) < 100:
            await ctx.tick()
            cycles += 1

    taken: list[int] = []
    rng = random.Random(1)
    run(buffer, source(buffer.i, range(100), rng), sink(buffer.o, taken, 100, rng), count)
    assert cycles == 100 + StreamBuffer.LATENCY
