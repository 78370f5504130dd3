"""Local addresses: every word's address in order, without gaps between runs, as the model says."""

import random
from itertools import islice
from typing import Any

import pytest
from amaranth.hdl import Shape

from intloom.hw.dma.address_walker import AddressWalker, local_address_layout
from intloom.hw.dma.runs import RunWalker, local_run_layout
from intloom.hw.spec.isa import SCRATCH_BITS
from intloom.hw.spec.params import preset
from tests.hw.dma.moves import random_fields
from tests.hw.streams import cycles_through, made, run, sink, source

PARAMS = preset("small")


def _runs(rng: random.Random, moves: int) -> list[dict[str, Any]]:
    """The local side of random moves' runs."""
    return [item["local"] for _ in range(moves) for item in RunWalker.model(random_fields(rng, PARAMS, 20), PARAMS)]


def _bits(address: dict[str, int]) -> int:
    return int(local_address_layout(PARAMS).const(address).as_value().value)


@pytest.mark.parametrize(("offer", "take"), [(0.7, 0.7), (1.0, 0.4), (0.4, 1.0)])
def test_addresses_of_random_runs(offer: float, take: float, rng: random.Random) -> None:
    runs = _runs(rng, 12)
    expected = [_bits(address) for item in runs for address in AddressWalker.model(item)]
    walker = made(AddressWalker, PARAMS)
    taken: list[int] = []
    run(walker, source(walker.i, runs, rng, offer), sink(walker.o, taken, len(expected), rng, take))
    assert taken == expected


def test_an_address_comes_every_cycle(rng: random.Random) -> None:
    runs = _runs(rng, 4)
    words = sum(item["words"] for item in runs)
    walker = made(AddressWalker, PARAMS)
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
    assert cycles_through(AddressWalker(PARAMS), _runs(rng, 1)[0]) == AddressWalker.LATENCY


PREFIX = 24
WORD_BITS = Shape.cast(local_run_layout(PARAMS).members["words"]).width


@pytest.mark.parametrize("bit", range(8, WORD_BITS))
def test_a_long_run_goes_on(bit: int, rng: random.Random) -> None:
    """A run whose length, without one bit, would end soon: its first words, and not the next run."""
    for more in (1, 2, 9):
        item = {"target": 1, "addr": rng.getrandbits(SCRATCH_BITS), "words": (1 << bit) + more, "last": 1, "index": 5}
        walker = made(AddressWalker, PARAMS)
        taken: list[int] = []
        offer = source(walker.i, [item, item], rng)
        run(walker, sink(walker.o, taken, PREFIX, rng), background=[offer])
        assert taken == [_bits(address) for address in islice(AddressWalker.model(item), PREFIX)]


def test_a_run_of_thousands_of_words_ends(rng: random.Random) -> None:
    """Its address wraps, and its length borrows through 12 bits."""
    items = [
        {"target": 0, "addr": (1 << SCRATCH_BITS) - 9, "words": words, "last": 1, "index": words} for words in (4097, 2)
    ]
    expected = [_bits(address) for item in items for address in AddressWalker.model(item)]
    walker = made(AddressWalker, PARAMS)
    taken: list[int] = []
    run(walker, source(walker.i, items, rng), sink(walker.o, taken, len(expected), rng))
    assert taken == expected
