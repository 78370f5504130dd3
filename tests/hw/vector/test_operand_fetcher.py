"""Operand fetcher on a port that refuses at random."""

import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from intloom.hw.ports import READ_LATENCY
from intloom.hw.spec.isa import SCRATCH_BITS
from intloom.hw.vector.operand_fetcher import QUEUE_WORDS, OperandFetcher, operand_layout
from tests.hw.streams import cycles_through, made, run, sink, source

BYTES = 4


RATES = [(1.0, 1.0, 1.0), (1.0, 1.0, 0.2), (0.5, 1.0, 0.5), (1.0, 0.4, 1.0), (0.7, 0.7, 0.7)]


def _reader(port: Any, words: Mapping[int, int], rng: random.Random, grant: float) -> Callable[[Any], Any]:
    """A memory behind a read port: grants at random, data `READ_LATENCY` cycles later and noise otherwise."""

    async def process(ctx: Any) -> None:
        due: list[int | None] = [None] * READ_LATENCY
        waiting: int | None = None
        while True:
            data = due.pop(0)
            ctx.set(port.data, rng.getrandbits(8 * BYTES) if data is None else data)
            ready = rng.random() < grant
            ctx.set(port.ready, ready)
            *_, valid, addr = await ctx.tick().sample(port.valid, port.addr)
            assert waiting is None or (valid and addr == waiting), "a request was dropped or changed"
            waiting = addr if valid and not ready else None
            due.append(words[addr] if valid and ready else None)

    return process


@pytest.mark.parametrize(("offer", "grant", "take"), RATES)
def test_words_are_fetched_in_order(offer: float, grant: float, take: float, rng: random.Random) -> None:
    fetch = made(OperandFetcher, BYTES)
    words = {at: rng.randbytes(BYTES) for at in (0, *(rng.getrandbits(SCRATCH_BITS) for _ in range(63)))}
    stored = {at: int.from_bytes(word, "little") for at, word in words.items()}
    fill = rng.randrange(256)
    items = [
        {
            "addr": rng.choice([*words]),
            "inside": rng.random() < 0.7,
            "tap": {"first": rng.randrange(2), "last": rng.randrange(2)},
        }
        for _ in range(200)
    ]
    taken: list[int] = []

    async def configure(ctx: Any) -> None:
        ctx.set(fetch.fill, fill)

    run(
        fetch, configure, source(fetch.i, items, rng, offer), sink(fetch.o, taken, len(items), rng, take),
        background=[_reader(fetch.port, stored, rng, grant)],
    )  # fmt: skip
    found = [operand_layout(BYTES).from_bits(bits) for bits in taken]
    assert [(w.word.to_bytes(BYTES, "little"), w.tap.first, w.tap.last) for w in found] == [
        (OperandFetcher.model(item, words, fill), item["tap"]["first"], item["tap"]["last"]) for item in items
    ]


def test_a_word_comes_after_the_latency(rng: random.Random) -> None:
    fetch = made(OperandFetcher, BYTES)
    reader = _reader(fetch.port, dict(enumerate(range(64))), rng, 1.0)
    assert cycles_through(fetch, {"addr": 3, "inside": 1}, background=[reader]) == OperandFetcher.LATENCY


def test_fill_words_need_no_grant(rng: random.Random) -> None:
    fetch = made(OperandFetcher, BYTES)
    taken: list[int] = []
    reader = _reader(fetch.port, {}, rng, 0.0)
    run(fetch, source(fetch.i, [{"inside": 0}] * 50, rng), sink(fetch.o, taken, 50, rng), background=[reader])


def test_a_word_is_fetched_every_cycle(rng: random.Random) -> None:
    fetch = made(OperandFetcher, BYTES)
    items = [{"addr": k % 64, "inside": 1} for k in range(100)]
    taken: list[int] = []
    offer = source(fetch.i, items, rng)
    cycles = 0

    async def offer_late(ctx: Any) -> None:
        # Cycles without an offer take no credits.
        await ctx.tick().repeat(QUEUE_WORDS)
        await offer(ctx)

    async def count(ctx: Any) -> None:
        nonlocal cycles
        await ctx.tick().repeat(QUEUE_WORDS)
        while len(taken) < len(items):
            await ctx.tick()
            cycles += 1

    reader = _reader(fetch.port, dict(enumerate(range(64))), rng, 1.0)
    run(fetch, offer_late, sink(fetch.o, taken, len(items), rng), count, background=[reader])
    assert cycles <= len(items) + OperandFetcher.LATENCY + 1


def test_a_halted_fetch_only_completes_buffered_requests(rng: random.Random) -> None:
    fetch = made(OperandFetcher, BYTES)
    requests = 0

    async def bench(ctx: Any) -> None:
        nonlocal requests
        ctx.set(fetch.i.payload.inside, 1)
        ctx.set(fetch.i.valid, 1)
        await ctx.tick().repeat(4)
        ctx.set(fetch.halt, 1)
        await ctx.tick().repeat(4)
        assert ctx.get(fetch.port.valid)
        assert not ctx.get(fetch.idle)
        ctx.set(fetch.port.ready, 1)
        for _ in range(8):
            *_, valid, idle = await ctx.tick().sample(fetch.port.valid, fetch.idle)
            assert valid != idle
            requests += valid
        assert ctx.get(fetch.idle)

    run(fetch, bench)
    assert requests == 2
