"""Runs and bursts: every word once and in order, no burst too long or across 4 KiB, runs that touch joined."""

import random
from collections.abc import Iterable
from functools import partial
from typing import Any

import pytest
from amaranth.hdl import Cat

from intloom.hw.dma.bursts import BurstSplitter
from intloom.hw.dma.runs import RUN_BITS, RunWalker, word_address_bits
from intloom.hw.spec.params import HardwareParams, preset
from tests.hw.dma.moves import random_fields, set_window
from tests.hw.streams import cycles_through, made, run

Burst = tuple[int, int, bool]


def _bursts(
    params: HardwareParams, base: int, runs: list[dict[str, int]], rng: random.Random, flush: float = 0.0
) -> list[Burst]:
    """The bursts of some runs; `flush` is how often runs may not come."""
    splitter = made(BurstSplitter, params)
    result: list[Burst] = []
    instructions = sum(item["last"] for item in runs)

    async def feed(ctx: Any) -> None:
        set_window(ctx, splitter.window, base)
        ctx.set(splitter.issue_enable, 1)
        for item in runs:
            while rng.random() < flush:
                ctx.set(splitter.flush, 1)
                await ctx.tick()
            ctx.set(splitter.flush, 0)
            while rng.random() < 0.1:
                await ctx.tick()
            ctx.set(splitter.i.payload, item)
            ctx.set(splitter.i.valid, 1)
            await ctx.tick().until(splitter.i.ready)
            ctx.set(splitter.i.valid, 0)
            # Not offered.
            ctx.set(splitter.i.payload, rng.choice(runs))

    async def take(ctx: Any) -> None:
        while sum(last for *_, last in result) < instructions:
            ctx.set(splitter.o.ready, rng.random() < 0.8)
            *_, valid, ready, burst = await ctx.tick().sample(splitter.o.valid, splitter.o.ready, splitter.o.payload)
            if valid and ready:
                result.append((burst.addr, burst.beats_less_one + 1, bool(burst.last)))

    run(splitter, feed, take)
    return result


def _words(bursts: Iterable[Burst], params: HardwareParams) -> list[tuple[int, bool]]:
    """Every word of the bursts, and whether it is its instruction's last."""
    wrap = 1 << word_address_bits(params)
    return [((at + k) % wrap, last and k == beats - 1) for at, beats, last in bursts for k in range(beats)]


@pytest.mark.parametrize("name", ["nano", "base", "large"])
@pytest.mark.parametrize("flush", [0.0, 0.4])
def test_bursts_follow_their_model_and_obey_axi(name: str, flush: float, seed: int) -> None:
    rng = random.Random(seed)
    params = preset(name).replace(axi_burst=rng.choice([4, 8, 64]), axi_addr_bits=64)
    moves = [random_fields(rng, params, 300) for _ in range(12)]
    runs = [item["memory"] for move in moves for item in RunWalker.model(move, params)]
    base = rng.getrandbits(word_address_bits(params) - 1)
    expected = list(BurstSplitter.model(base, runs, params))
    found = _bursts(params, base, runs, rng, flush)
    assert _words(found, params) == _words(expected, params)
    assert flush or found == expected
    page = 4096 // params.word_bytes
    for at, beats, _ in found:
        assert 1 <= beats <= params.axi_burst
        assert at // page == (at + beats - 1) // page, "a burst crosses 4 KiB"


def test_the_number_of_a_block_carries_through_all_of_its_bits(rng: random.Random) -> None:
    """Runs that begin two words before an address with one bit, in the longest address."""
    params = preset("nano").replace(axi_addr_bits=64, axi_burst=4)
    bits = range(3, word_address_bits(params))
    for bit in bits:
        run_over = {"offset": 0, "words": 5, "contiguous": 0, "last": 1}
        first = (1 << bit) - 2
        assert _bursts(params, first, [run_over], rng) == [(first, 2, False), (first + 2, 3, True)], bit


def test_the_words_of_a_run_are_counted_in_all_bits() -> None:
    """Bursts of a block, without another run and with no last one."""
    params = preset("nano").replace(axi_addr_bits=64, axi_burst=4)
    splitter = made(BurstSplitter, params)
    found: list[Burst] = []

    async def bench(ctx: Any, words: int) -> None:
        set_window(ctx, splitter.window, 0)
        ctx.set(Cat(splitter.issue_enable, splitter.o.ready, splitter.i.valid), 0b111)
        ctx.set(splitter.i.payload, {"offset": 0, "words": words, "contiguous": 0, "last": 0})
        for cycle in range(12):
            ctx.set(splitter.i.valid, cycle == 0)
            if ctx.get(splitter.o.valid):
                burst = ctx.get(splitter.o.payload)
                found.append((burst.addr, burst.beats_less_one + 1, bool(burst.last)))
            await ctx.tick()

    for bit in range(3, RUN_BITS):
        # With a block more, the first block leaves 2^n words.
        for words in (1 << bit, (1 << bit) + 4):
            found.clear()
            run(splitter, partial(bench, words=words))
            assert found[:2] == [(0, 4, False), (4, 4, False)], words


def test_rows_that_touch_travel_in_long_bursts() -> None:
    params = preset("base")
    move = {"dram": 0, "n0": 8, "n1": 16, "n2": 4, "dram_s1": 8, "dram_s2": 128}
    local = dict.fromkeys(("target", "local", "local_s1", "local_s2", "index"), 0)
    runs = [item["memory"] for item in RunWalker.model(move | local, params)]
    assert _bursts(params, 0, runs, random.Random(1)) == [(64 * i, 64, i == 7) for i in range(8)]


def test_a_burst_comes_after_the_latency() -> None:
    splitter = made(BurstSplitter, preset("base"))

    async def permit(ctx: Any) -> None:
        set_window(ctx, splitter.window, 0)
        ctx.set(splitter.issue_enable, 1)

    whole = {"offset": 16, "words": 5, "contiguous": 0, "last": 1}
    assert cycles_through(splitter, whole, background=[permit]) == BurstSplitter.LATENCY


def test_a_pending_burst_issues_when_no_run_can_come() -> None:
    """Else the queue of addresses, full of runs whose data was never asked for, would hold everything up."""
    splitter = made(BurstSplitter, preset("base"))
    left = []

    async def bench(ctx: Any) -> None:
        set_window(ctx, splitter.window, 0)
        ctx.set(splitter.issue_enable, 1)
        ctx.set(splitter.i.payload, {"offset": 16, "words": 5, "contiguous": 0, "last": 0})
        ctx.set(splitter.i.valid, 1)
        await ctx.tick()
        ctx.set(splitter.i.valid, 0)
        # A run that is not offered does not count as contiguous.
        ctx.set(splitter.i.payload.contiguous, 1)
        for _ in range(5):
            assert not ctx.get(splitter.o.valid), "the next run may join"
            await ctx.tick()
        ctx.set(splitter.flush, 1)
        await ctx.tick()
        ctx.set(splitter.flush, 0)
        ctx.set(splitter.i.payload, {"offset": 21, "words": 5, "contiguous": 1, "last": 1})
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


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("block", [4, 64])
def test_a_burst_with_a_word_outside_the_window_does_not_issue(bits: int, block: int, rng: random.Random) -> None:
    """Runs before, across, at and after both ends of a window, and around the end of the address space."""
    params = preset("nano").replace(axi_burst=block, axi_addr_bits=bits)
    space = 1 << word_address_bits(params)
    ended = {"issued": 0, "refused": 0}
    for _ in range(120):
        base, limit = rng.choice([(0, rng.randrange(300)), (space - 200, rng.randrange(201)), (4096, 256), (777, 131)])
        words = rng.randint(1, 2 * block)
        edge = rng.choice([0, limit, limit - words, space - base, -base])
        offset = rng.choice([edge, edge + rng.randint(-block, block), rng.randrange(limit + 1)])
        splitter = made(BurstSplitter, params)
        item = {"offset": offset % min(space, 1 << 32), "words": words, "contiguous": 0, "last": rng.getrandbits(1)}
        expected: list[Burst] = []
        refused = False
        # Without another run, a run that is not its instruction's last one ends a burst as well.
        for at, beats, final in BurstSplitter.model(base, [item | {"last": 1}], params):
            if not base <= at <= at + beats <= base + limit:
                refused = True
                break
            expected.append((at, beats, final and bool(item["last"])))
        assert _until_refused(splitter, base, limit, item, len(expected), refused=refused) == expected
        ended["refused" if refused else "issued"] += 1
    assert min(ended.values()) > 20


@pytest.mark.parametrize("bit", range(6))
def test_a_window_begins_and_ends_anywhere_in_a_block(bit: int) -> None:
    """A run of one word, next to each end of a window, on both sides; blocks have 64 words."""
    params = preset("nano").replace(axi_burst=64)
    splitter = made(BurstSplitter, params)
    for base in (4096 + (1 << bit), 4096 + (1 << bit) - 1):
        for limit in (128, 129):
            for offset in (-1, 0, limit - 1, limit):
                item = {"offset": offset % (1 << word_address_bits(params)), "words": 1, "contiguous": 0, "last": 1}
                inside = 0 <= offset < limit
                bursts = [(base + offset, 1, True)] * inside
                assert _until_refused(splitter, base, limit, item, len(bursts), refused=not inside) == bursts


def _until_refused(
    splitter: BurstSplitter, base: int, limit: int, item: dict[str, int], bursts: int, *, refused: bool
) -> list[Burst]:
    """The bursts of a run up to a refused one; after it nothing may issue."""
    result: list[Burst] = []

    async def bench(ctx: Any) -> None:
        set_window(ctx, splitter.window, base, limit)
        ctx.set(splitter.issue_enable, 1)
        ctx.set(splitter.o.ready, 1)
        ctx.set(splitter.i.payload, item)
        ctx.set(splitter.i.valid, 1)
        await ctx.tick().until(splitter.i.ready)
        ctx.set(splitter.i.valid, 0)
        ctx.set(splitter.flush, 1)
        ended = 0
        for _ in range(4 * (bursts + 3)):
            *_, valid, burst, outside = await ctx.tick().sample(splitter.o.valid, splitter.o.payload, splitter.outside)
            if valid:
                result.append((burst.addr, burst.beats_less_one + 1, bool(burst.last)))
            assert ended <= outside <= refused
            ended = outside
        assert ended == refused

    run(splitter, bench)
    return result
