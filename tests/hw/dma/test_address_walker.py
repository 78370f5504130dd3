"""Local addresses: every word's address in order, without gaps between runs, as the model says."""

from __future__ import annotations

import random
from typing import Any

import pytest

from intloom.hw.dma.address_walker import LOCAL_ADDRESS_LAYOUT, AddressWalker
from intloom.hw.dma.runs import RunWalker
from intloom.hw.spec.params import preset
from tests.hw.dma.moves import random_fields
from tests.hw.streams import cycles_through, run, sink, source

PARAMS = preset("small")


def _runs(rng: random.Random, moves: int) -> list[dict[str, Any]]:
    """The local side of random moves' runs."""
    return [item["local"] for _ in range(moves) for item in RunWalker.model(random_fields(rng, PARAMS, 20), PARAMS)]


def _bits(address: dict[str, int]) -> int:
    return int(LOCAL_ADDRESS_LAYOUT.const(address).as_value().value)


@pytest.mark.parametrize(("offer", "take"), [(0.7, 0.7), (1.0, 0.4), (0.4, 1.0)])
def test_addresses_of_random_runs(offer: float, take: float, rng: random.Random) -> None:
    runs = _runs(rng, 12)
    expected = [_bits(address) for item in runs for address in AddressWalker.model(item)]
    walker = AddressWalker()
    taken: list[int] = []
    run(walker, source(walker.i, runs, rng, offer), sink(walker.o, taken, len(expected), rng, take))
    assert taken == expected


def test_an_address_comes_every_cycle(rng: random.Random) -> None:
    runs = _runs(rng, 4)
    words = sum(item["words"] for item in runs)
    walker = AddressWalker()
    taken: list[int] = []
    cycles = 0

    async def count(ctx: Any) -> None:
        nonlocal cycles
        while len(taken) < words:
            await ctx.tick()
            cycles += 1

    run(walker, source(walker.i, runs, rng), sink(walker.o, taken, words, rng), count)
    assert cycles == words + AddressWalker.LATENCY


def test_the_first_address_comes_after_the_latency(rng: random.Random) -> None:
    assert cycles_through(AddressWalker(), _runs(rng, 1)[0]) == AddressWalker.LATENCY
