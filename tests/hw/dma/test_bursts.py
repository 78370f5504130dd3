"""Runs and bursts: every word once and in order, no burst too long or across 4 KiB, runs that touch joined."""

from __future__ import annotations

import random
from typing import Any

import pytest

from hw.dma.bursts import BurstSplitter
from hw.dma.runs import offset_bits, word_address_bits
from hw.spec.params import HardwareParams, preset
from tests.hw.streams import run

Move = dict[str, int]


def _random_move(rng: random.Random) -> Move:
    n0, n1, n2 = rng.choice([1, 2, 5, 16, 100, rng.randrange(1, 300)]), rng.randrange(1, 6), rng.randrange(1, 4)
    s1 = rng.choice([n0, rng.getrandbits(32), n0 + 3])
    s2 = rng.choice([n0 * n1, rng.getrandbits(32), s1 * n1 % 2**32])
    return {"dram": rng.getrandbits(32), "n0": n0, "n1": n1, "n2": n2, "dram_s1": s1, "dram_s2": s2}


def _words(move: Move, base: int, params: HardwareParams) -> list[int]:
    return [
        (base + (move["dram"] + p2 * move["dram_s2"] + p1 * move["dram_s1"]) % 2**32 + p0)
        % (1 << word_address_bits(params))
        for p2 in range(move["n2"])
        for p1 in range(move["n1"])
        for p0 in range(move["n0"])
    ]


def _runs(move: Move, bits: int) -> list[dict[str, int]]:
    """The move's runs, as the walker makes them with offsets of so many bits."""
    places = [(p2, p1) for p2 in range(move["n2"]) for p1 in range(move["n1"])]
    offsets = [(move["dram"] + p2 * move["dram_s2"] + p1 * move["dram_s1"]) % (1 << bits) for p2, p1 in places]
    ends = [None, *((offset + move["n0"]) % (1 << bits) for offset in offsets)]
    return [
        {"offset": offset, "words": move["n0"], "joins": int(offset == end), "last": int(place == places[-1])}
        for place, offset, end in zip(places, offsets, ends, strict=False)
    ]


def _bursts(
    params: HardwareParams, base: int, moves: list[Move], rng: random.Random, held_back: float = 0.0
) -> list[list[tuple[int, int]]]:
    """The bursts, (word, beats), of each move; `held_back` is how often runs may not come."""
    splitter = BurstSplitter(params)
    result: list[list[tuple[int, int]]] = [[]]

    async def feed(ctx: Any) -> None:
        ctx.set(splitter.base, base)
        ctx.set(splitter.may_issue, 1)
        for item in (r for move in moves for r in _runs(move, offset_bits(params))):
            while rng.random() < held_back:
                ctx.set(splitter.held_back, 1)
                await ctx.tick()
            ctx.set(splitter.held_back, 0)
            while rng.random() < 0.1:
                await ctx.tick()
            ctx.set(splitter.i.payload, item)
            ctx.set(splitter.i.valid, 1)
            await ctx.tick().until(splitter.i.ready)
            ctx.set(splitter.i.valid, 0)

    async def take(ctx: Any) -> None:
        while len(result) <= len(moves):
            ctx.set(splitter.o.ready, rng.random() < 0.8)
            *_, valid, ready, burst = await ctx.tick().sample(splitter.o.valid, splitter.o.ready, splitter.o.payload)
            if valid and ready:
                result[-1].append((burst.addr, burst.beats_less_one + 1))
                if burst.last:
                    result.append([])

    run(splitter, feed, take)
    return result[:-1]


@pytest.mark.parametrize("name", ["nano", "base", "large"])
@pytest.mark.parametrize("held_back", [0.0, 0.4])
def test_bursts_cover_the_move_and_obey_axi(name: str, held_back: float, seed: int) -> None:
    rng = random.Random(seed)
    params = preset(name).replace(axi_burst=rng.choice([4, 8, 64]))
    base = rng.getrandbits(word_address_bits(params))
    moves = [_random_move(rng) for _ in range(12)]
    page = 4096 // params.word_bytes
    wrap = 1 << word_address_bits(params)
    for move, bursts in zip(moves, _bursts(params, base, moves, rng, held_back), strict=True):
        assert [(at + k) % wrap for at, beats in bursts for k in range(beats)] == _words(move, base, params)
        for at, beats in bursts:
            assert 1 <= beats <= params.axi_burst
            assert at // page == (at + beats - 1) // page, "a burst crosses 4 KiB"


def test_rows_that_touch_travel_in_long_bursts() -> None:
    params = preset("base")
    move = {"dram": 0, "n0": 8, "n1": 16, "n2": 4, "dram_s1": 8, "dram_s2": 128}
    assert _bursts(params, 0, [move], random.Random(1)) == [[(64 * i, 64) for i in range(8)]]


def test_a_pending_burst_goes_out_when_no_run_can_come() -> None:
    """Else the queue of places, full of runs whose data was never asked for, would hold everything up."""
    splitter = BurstSplitter(preset("base"))
    left = []

    async def bench(ctx: Any) -> None:
        ctx.set(splitter.may_issue, 1)
        ctx.set(splitter.i.payload, {"offset": 16, "words": 5, "joins": 0, "last": 0})
        ctx.set(splitter.i.valid, 1)
        await ctx.tick()
        ctx.set(splitter.i.valid, 0)
        for _ in range(5):
            assert not ctx.get(splitter.o.valid), "the next run may join"
            await ctx.tick()
        ctx.set(splitter.held_back, 1)
        await ctx.tick()
        ctx.set(splitter.held_back, 0)
        ctx.set(splitter.i.payload, {"offset": 21, "words": 5, "joins": 1, "last": 1})
        ctx.set(splitter.i.valid, 1)
        ctx.set(splitter.i.valid, 1)
        ctx.set(splitter.o.ready, 1)
        for _ in range(12):
            *_, valid, taken, burst = await ctx.tick().sample(splitter.o.valid, splitter.i.ready, splitter.o.payload)
            if taken:
                ctx.set(splitter.i.valid, 0)
            if valid:
                left.append((burst.addr, burst.beats_less_one + 1, burst.last))

    run(splitter, bench)
    assert left == [(16, 5, 0), (21, 5, 1)]
