"""The stream buffer: order, no loss, full rate, and in every cycle what its model says."""

import random
from typing import Any

import pytest

from intloom.hw.bus.skid_buffer import SkidBuffer
from tests.hw.streams import cycles_through, made, run, sink, source


@pytest.mark.parametrize("rates", [(1.0, 0.5), (0.5, 1.0), (0.6, 0.6)])
def test_every_cycle_follows_the_model(rates: tuple[float, float], rng: random.Random) -> None:
    buffer = made(SkidBuffer, 8)
    steps: list[tuple[int | None, bool]] = []
    shown: list[tuple[bool, int | None]] = []

    async def bench(ctx: Any) -> None:
        offer: int | None = None
        for _ in range(400):
            if offer is None and rng.random() < rates[0]:
                offer = rng.getrandbits(8)
            steps.append((offer, rng.random() < rates[1]))
            ctx.set(buffer.i.valid, offer is not None)
            ctx.set(buffer.i.payload, offer or 0)
            ctx.set(buffer.o.ready, steps[-1][1])
            *_, room, valid, item = await ctx.tick().sample(buffer.i.ready, buffer.o.valid, buffer.o.payload)
            shown.append((bool(room), item if valid else None))
            offer = None if room else offer

    run(buffer, bench)
    assert shown == list(SkidBuffer.model(steps))


def test_an_item_comes_out_after_the_latency() -> None:
    assert cycles_through(SkidBuffer(8), 77) == SkidBuffer.LATENCY


def test_an_item_passes_every_cycle() -> None:
    buffer = made(SkidBuffer, 8)
    cycles = 0

    async def count(ctx) -> None:
        nonlocal cycles
        while len(taken) < 100:
            await ctx.tick()
            cycles += 1

    taken: list[int] = []
    rng = random.Random(1)
    run(buffer, source(buffer.i, range(100), rng), sink(buffer.o, taken, 100, rng), count)
    assert cycles == 100 + SkidBuffer.LATENCY
