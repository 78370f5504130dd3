"""Fetch: every instruction in order, never more asked for than there is room, nothing after halt."""

import random
from itertools import islice
from typing import Any

import pytest

from intloom.hw.bus.axi4 import BOUNDARY_BYTES, LENGTH_BITS
from intloom.hw.control.fetch import Fetch, beats_per_instruction
from intloom.hw.dma.runs import word_address_bits
from intloom.hw.spec.isa import COUNT_BITS, DRAM_BITS
from intloom.hw.spec.params import HardwareParams, preset
from tests.hw.dma.memory_model import content, read_memory
from tests.hw.dma.moves import set_window
from tests.hw.streams import made, run

BASE, PROGRAM = 0x777, 0x3F
LIMIT = (1 << COUNT_BITS) - 1
"""The longest program: its last instruction has the highest index but one."""
_FILL_CYCLES = 40
"""More cycles than a slow memory takes for a block of four words."""


async def _launch(ctx: Any, fetch: Fetch, length: int, program: int = PROGRAM, base: int = BASE) -> None:
    set_window(ctx, fetch.window, base)
    ctx.set(fetch.program, program)
    ctx.set(fetch.length, length)
    ctx.set(fetch.start, 1)
    await ctx.tick()
    ctx.set(fetch.start, 0)


@pytest.mark.parametrize("name", ["nano", "base", "large"])
@pytest.mark.parametrize("length", [1, 100])
def test_words_come_in_order(name: str, length: int, seed: int) -> None:
    """From any address, with bursts and queues of any size; each bit of the address is 0 once and 1 once."""
    rng = random.Random(seed)
    params = preset(name)
    params = params.replace(axi_burst=rng.choice([4, min(1 << LENGTH_BITS, BOUNDARY_BYTES // params.beat_bytes)]))
    fetch = made(Fetch, params)
    for first in _addresses(params, rng):
        _check_words(fetch, params, first, length, rng)


def _addresses(params: HardwareParams, rng: random.Random) -> tuple[int, int]:
    """Two addresses of which each bit is 0 in one and 1 in the other; neither is near an end of the address space."""
    bits = word_address_bits(params)
    address = 1 << bits - 1 | rng.getrandbits(bits - 2)
    return address, address ^ (1 << bits) - 1


def _check_words(fetch: Fetch, params: HardwareParams, first: int, length: int, rng: random.Random) -> None:
    program = rng.randrange(1000)
    taken: list[int] = []
    bursts: list[tuple[int, int]] = []
    words = length * beats_per_instruction(params)

    async def take(ctx: Any) -> None:
        await _launch(ctx, fetch, length, program, first - program)
        await ctx.tick()
        while len(taken) < words:
            assert not ctx.get(fetch.exhausted)
            ctx.set(fetch.words.ready, rng.random() < 0.7)
            *_, valid, ready, word = await ctx.tick().sample(fetch.words.valid, fetch.words.ready, fetch.words.payload)
            if valid and ready:
                assert not word.error
                taken.append(word.data)
        await ctx.tick()
        assert ctx.get(fetch.exhausted)
        assert ctx.get(fetch.idle)
        assert not ctx.get(fetch.words.valid)

    async def look(ctx: Any) -> None:
        port = fetch.bursts
        async for *_, passes, burst in ctx.tick().sample(port.valid & port.ready, port.payload):
            if passes:
                bursts.append((burst.addr, burst.beats_less_one + 1))

    memory = read_memory(fetch.bursts, fetch.r, params, rng, 9, 0.7, params.axi_outstanding)
    run(fetch, take, background=[memory, look])
    assert bursts == list(Fetch.model(first, length, params))
    assert taken == [content(first + i, params) for i in range(words)]


@pytest.mark.parametrize("name", ["nano", "base"])
def test_space_may_return_in_the_cycle_of_a_request(name: str, seed: int) -> None:
    """A slow memory and blocks of four words: now and then a block is read as the next one is asked for.

    If that block's space were lost, the queue would no longer fill up. Words in a full queue stay as they are.
    """
    rng = random.Random(seed)
    params = preset(name).replace(axi_burst=4)
    fetch = made(Fetch, params)
    received = 0
    taken: list[int] = []

    async def count(ctx: Any) -> None:
        nonlocal received
        words = fetch.words
        seen = (fetch.r.valid & fetch.r.ready, words.valid & words.ready, words.payload.data)
        async for *_, came, went, word in ctx.tick().sample(*seen):
            received += came
            taken.extend([word] * went)

    async def take(ctx: Any) -> None:
        await _launch(ctx, fetch, 1000)
        while len(taken) < 600:
            # Words wait long enough for a block's last one to be read as the memory takes the request on offer.
            ctx.set(fetch.words.ready, rng.random() < 0.6)
            await ctx.tick()
        ctx.set(fetch.words.ready, 0)
        await ctx.tick().repeat(8 * fetch.prefetch_words)
        # At most a word for each address of the memory, and one in its output register.
        full = fetch.prefetch_words + 1
        assert full - params.axi_burst <= received - len(taken) <= full
        # It fills again wherever in a block the next word is.
        for _ in range(2 * params.axi_burst):
            ctx.set(fetch.words.ready, 1)
            await ctx.tick()
            ctx.set(fetch.words.ready, 0)
            await ctx.tick().repeat(_FILL_CYCLES)
        ctx.set(fetch.words.ready, 1)
        await ctx.tick().repeat(fetch.prefetch_words)
        assert taken == [content(BASE + PROGRAM + k, params) for k in range(len(taken))]

    run(fetch, take, background=[read_memory(fetch.bursts, fetch.r, params, rng, 3, 0.5, 2), count])


def test_bursts_and_words_come_after_their_latencies() -> None:
    fetch = made(Fetch, preset("nano"))

    async def until(ctx: Any, signal: Any) -> int:
        cycles = 1
        while not ctx.get(signal):
            await ctx.tick()
            cycles += 1
        return cycles

    async def look(ctx: Any) -> None:
        await _launch(ctx, fetch, 1)
        assert await until(ctx, fetch.bursts.valid) == Fetch.LATENCY
        ctx.set(fetch.bursts.ready, 1)
        await ctx.tick()
        ctx.set(fetch.r.payload, {"id": 0, "data": 7, "resp": 0, "last": 0})
        ctx.set(fetch.r.valid, 1)
        await ctx.tick()
        ctx.set(fetch.r.valid, 0)
        assert await until(ctx, fetch.words.valid) == Fetch.WORD_LATENCY
        assert ctx.get(fetch.words.payload).data == 7

    run(fetch, look)


def test_an_empty_program_is_soon_exhausted() -> None:
    fetch = made(Fetch, preset("nano"))

    async def look(ctx: Any) -> None:
        await _launch(ctx, fetch, 0)
        await ctx.tick()
        for _ in range(2):
            assert not ctx.get(fetch.exhausted), "its length has not been looked at"
            await ctx.tick()
        for _ in range(20):
            assert ctx.get(fetch.exhausted)
            assert ctx.get(fetch.idle)
            assert not ctx.get(fetch.bursts.valid)
            await ctx.tick()

    run(fetch, look)


@pytest.mark.parametrize(("params", "latency"), [(preset("base"), 3), (preset("nano").replace(axi_burst=4), 300)])
def test_prefetch_stops_when_its_queue_is_full_and_on_halt(params: HardwareParams, latency: int) -> None:
    """With the long latency, all blocks of the queue are outstanding before the first beat comes."""
    fetch = made(Fetch, params)
    words = outstanding = most = 0

    async def count(ctx: Any) -> None:
        nonlocal words, outstanding, most
        seen = (fetch.bursts.valid & fetch.bursts.ready, fetch.r.valid & fetch.r.ready, fetch.r.payload.last)
        async for *_, asked, taken, last, idle in ctx.tick().sample(*seen, fetch.idle):
            assert not (idle and outstanding)
            words += taken
            outstanding += asked - (taken and last)
            most = max(most, outstanding)

    async def never_take(ctx: Any) -> None:
        await _launch(ctx, fetch, 1000)
        for _ in range(600):
            await ctx.tick()
        assert fetch.prefetch_words - params.axi_burst < words <= fetch.prefetch_words
        assert ctx.get(fetch.idle)
        ctx.set(fetch.halt, 1)
        ctx.set(fetch.words.ready, 1)
        # A word a cycle as long as there are any.
        for cycle in range(600):
            assert ctx.get(fetch.words.valid) == (cycle < words)
            await ctx.tick()
        assert ctx.get(fetch.idle)

    blocks = fetch.prefetch_words // params.axi_burst
    memory = read_memory(fetch.bursts, fetch.r, params, random.Random(1), latency, 1.0, blocks)
    run(fetch, never_take, background=[memory, count])
    assert words <= fetch.prefetch_words
    assert latency < 300 or most == blocks


@pytest.mark.parametrize("length", [LIMIT, LIMIT + 1, LIMIT + 2, 1 << 21, 1 << 31, (1 << 32) - 1, 1 << 19])
def test_a_long_program_is_fetched_beyond_its_first_instructions(length: int, rng: random.Random) -> None:
    """Lengths with a high bit, from a base whose bits are 0 once and 1 once: the first bursts, and no end."""
    params = preset("base")
    fetch = made(Fetch, params)
    program = 1 << DRAM_BITS - 1 | rng.getrandbits(DRAM_BITS - 2)
    for base in _addresses(params, rng):
        _check_first_bursts(fetch, params, base, program, length)


def _check_first_bursts(fetch: Fetch, params: HardwareParams, base: int, program: int, length: int) -> None:
    bursts: list[tuple[int, int]] = []

    async def take(ctx: Any) -> None:
        await _launch(ctx, fetch, length, program, base)
        ctx.set(fetch.words.ready, 1)
        port = fetch.bursts
        while len(bursts) < 6:
            ctx.set(port.ready, 1)
            *_, passes, burst = await ctx.tick().sample(port.valid & port.ready, port.payload)
            ctx.set(port.ready, 0)
            assert not ctx.get(fetch.exhausted)
            if passes:
                bursts.append((burst.addr, burst.beats_less_one + 1))
                for beat in range(burst.beats_less_one + 1):
                    ctx.set(fetch.r.payload.last, beat == burst.beats_less_one)
                    ctx.set(fetch.r.valid, 1)
                    await ctx.tick()
                ctx.set(fetch.r.valid, 0)

    run(fetch, take)
    assert bursts == list(islice(Fetch.model(base + program, length, params), 6))


@pytest.mark.parametrize("at", [0, 1, 17, -2, -1])
@pytest.mark.parametrize("response", [2, 3])
def test_an_error_in_any_beat_marks_its_word(at: int, response: int) -> None:
    """In the first, a middle and the last beat of a burst and of the program."""
    params = preset("base")
    fetch = made(Fetch, params)
    words = 8 * beats_per_instruction(params)
    marks: list[int] = []

    async def memory(ctx: Any) -> None:
        port, sent = fetch.bursts, 0
        ctx.set(port.ready, 1)
        while True:
            *_, asked, beats = await ctx.tick().sample(port.valid & port.ready, port.payload.beats_less_one)
            ctx.set(port.ready, not asked)
            for beat in range(beats + 1 if asked else 0):
                resp = response if sent == at % words else 0
                ctx.set(fetch.r.payload, {"id": 0, "data": sent, "resp": resp, "last": int(beat == beats)})
                ctx.set(fetch.r.valid, 1)
                await ctx.tick()
                sent += 1
            ctx.set(fetch.r.valid, 0)
            ctx.set(port.ready, 1)

    async def take(ctx: Any) -> None:
        await _launch(ctx, fetch, 8)
        ctx.set(fetch.words.ready, 1)
        while len(marks) < words:
            *_, valid, error = await ctx.tick().sample(fetch.words.valid, fetch.words.payload.error)
            marks.extend([error] * valid)

    run(fetch, take, background=[memory])
    assert [i for i, mark in enumerate(marks) if mark] == [at % words]


@pytest.mark.parametrize(("more", "wraps"), [(-1, 0), (0, 0), (1, 0), (0, 1)])
@pytest.mark.parametrize(
    ("program", "length"), [(0, 8), (37, 8), (37, LIMIT + 1), ((1 << DRAM_BITS) - 64, 8), ((1 << DRAM_BITS) - 1, 8)]
)
@pytest.mark.parametrize("name", ["nano", "base"])
def test_a_program_that_is_not_in_the_window_is_not_fetched(
    name: str, more: int, wraps: int, program: int, length: int
) -> None:
    """One word less than it needs, exactly as many, one more; and a window beyond the end of the address space.

    No window is large enough for a program whose end has an offset beyond the highest one.
    """
    params = preset(name)
    fetch = made(Fetch, params)
    end = program + min(length, LIMIT) * beats_per_instruction(params)
    limit = min(end + more, (1 << DRAM_BITS) - 1)

    async def bench(ctx: Any) -> None:
        ctx.set(fetch.window.base, BASE)
        ctx.set(fetch.window.limit, limit)
        ctx.set(fetch.window.wraps, wraps)
        ctx.set(fetch.program, program)
        ctx.set(fetch.length, length)
        ctx.set(fetch.start, 1)
        await ctx.tick()
        ctx.set(fetch.start, 0)
        fetched = 0
        for _ in range(20):
            fetched += ctx.get(fetch.bursts.valid)
            await ctx.tick()
        refused = end > limit or wraps == 1
        assert (bool(fetched), ctx.get(fetch.outside)) == (not refused, refused)
        assert ctx.get(fetch.idle) == refused
        assert not ctx.get(fetch.exhausted)

    run(fetch, bench)
