"""The weight fetcher: tiles come for every strip, when the array can take them, and constants are asked for beside."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

import pytest

from intloom.hw.mac.loops import taps
from intloom.hw.mac.weights import CONSTANTS_REQUEST, WeightFetcher
from intloom.hw.ports import WEIGHT_LATENCY
from intloom.hw.spec.isa import SCRATCH_BITS
from intloom.hw.spec.params import HardwareParams
from tests.hw.mac.shapes import RATES, WEIGHT_SHAPES
from tests.hw.streams import run, sink, source


def _job(rng: random.Random) -> dict[str, int]:
    return {
        "kernel_h": rng.randint(1, 3),
        "kernel_w": rng.randint(1, 3),
        "in_blocks": rng.randint(1, 3),
        "two_planes": rng.randrange(2),
        "out_blocks": rng.randint(1, 3),
        "strips": rng.randint(1, 3),
        "address": rng.getrandbits(SCRATCH_BITS),
        "first_tile": rng.getrandbits(SCRATCH_BITS),
        "load_table": rng.randrange(2),
        "load_residual": rng.randrange(2),
    }


class Array:
    """Takes tiles as the sequencer does, and checks when their words come against when pixels may go out."""

    def __init__(self, fetcher: WeightFetcher, params: HardwareParams, rng: random.Random, rate: float) -> None:
        self.fetcher, self.params, self.rng, self.rate = fetcher, params, rng, rate
        self.reads: list[int] = []
        self.taken: list[int] = []
        self.became_ready: list[int] = []
        self.loads: list[int] = []

    async def follow(self, ctx: Any, tiles: int) -> None:
        """Until all tiles have been taken and their last words have come."""
        fetcher, cycle, asked = self.fetcher, 0, deque([0] * WEIGHT_LATENCY)
        while len(self.taken) < tiles or any(asked):
            allowed = self.rng.random() < self.rate
            ctx.set(fetcher.read_allowed, allowed)
            valid = ctx.get(fetcher.read_valid)
            last = len(self.reads) % self.params.cols == self.params.cols - 1
            assert allowed or not valid or last
            assert ctx.get(fetcher.last_word) == bool(valid and last)
            self._load(cycle, ctx.get(fetcher.load), asked.popleft())
            asked.append(valid and 1 << len(self.reads) % self.params.cols)
            if valid:
                self.reads.append(ctx.get(fetcher.read_address))
            ready = ctx.get(fetcher.ready)
            if ready and len(self.became_ready) == len(self.taken):
                self.became_ready.append(cycle)
            takes = ready and self.rng.random() < self.rate
            ctx.set(fetcher.taken, takes)
            if takes:
                self.taken.append(cycle)
            await ctx.tick()
            cycle += 1

    def _load(self, cycle: int, load: int, expected: int) -> None:
        assert load == expected, "the word that comes now belongs to another column"
        if load:
            tile = len(self.loads) // self.params.cols
            # A word is in the shadow in the cycle after its load; the swap comes SWAP_AHEAD cycles after the taking.
            earliest = self.taken[tile - 1] + self.fetcher.SWAP_AHEAD if tile else 0
            assert cycle >= earliest, f"tile {tile} overwrites a shadow that has not been swapped"
            self.loads.append(cycle)

    def check(self) -> None:
        """Every tile was whole when the array swapped it in, had its pixels gone out at once."""
        for tile, ready in enumerate(self.became_ready):
            assert self.loads[(tile + 1) * self.params.cols - 1] < ready + self.fetcher.SWAP_AHEAD


@pytest.mark.parametrize("name", WEIGHT_SHAPES)
@pytest.mark.parametrize("rate", RATES)
def test_tiles_are_fetched_for_every_strip(name: str, rate: float, rng: random.Random) -> None:
    params = WEIGHT_SHAPES[name]
    jobs = [_job(rng) for _ in range(3 if params.cols < 16 else 1)]
    fetcher = WeightFetcher(params)
    array = Array(fetcher, params, rng, rate)
    requests: list[int] = []
    wanted = [CONSTANTS_REQUEST.const(r).as_value().value for job in jobs for r in WeightFetcher.requests(job, params)]
    tiles = sum(len([*taps(job)]) * job["strips"] * job["out_blocks"] for job in jobs)

    async def follow(ctx: Any) -> None:
        await array.follow(ctx, tiles)

    run(
        fetcher, source(fetcher.jobs, jobs, rng, rate), sink(fetcher.constants, requests, len(wanted), rng, rate),
        follow,
    )  # fmt: skip
    assert array.reads == [address for job in jobs for address in WeightFetcher.model(job, params)]
    assert requests == wanted
    array.check()


@pytest.mark.parametrize("name", WEIGHT_SHAPES)
def test_a_tile_is_ready_as_soon_as_its_words_can_be_read(name: str, rng: random.Random) -> None:
    params = WEIGHT_SHAPES[name]
    fetcher = WeightFetcher(params)

    async def rises(ctx: Any, port: Any, cycles: int) -> None:
        for _ in range(cycles):
            assert not ctx.get(port)
            await ctx.tick()
        assert ctx.get(port)

    async def bench(ctx: Any) -> None:
        ctx.set(fetcher.read_allowed, 1)
        ctx.set(fetcher.constants.ready, 1)
        ctx.set(fetcher.jobs.payload, _job(rng))
        ctx.set(fetcher.jobs.valid, 1)
        assert ctx.get(fetcher.jobs.ready)
        await rises(ctx, fetcher.constants.valid, WeightFetcher.LEAD)
        await rises(ctx, fetcher.read_valid, WeightFetcher.LEAD)
        await rises(ctx, fetcher.ready, params.cols - 1)

    run(fetcher, bench)
