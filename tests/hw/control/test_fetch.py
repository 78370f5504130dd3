"""Fetch: every instruction in order, never more asked for than there is room, nothing after halt."""

from __future__ import annotations

import random
from typing import Any

import pytest

from intloom.hw.control.fetch import Fetch, beats_per_instruction
from intloom.hw.spec.params import preset
from tests.hw.dma.memory_model import content, read_memory
from tests.hw.streams import run

BASE, PROGRAM = 0x777, 0x3F


async def _launch(ctx: Any, fetch: Fetch, length: int, program: int = PROGRAM) -> None:
    ctx.set(fetch.base, BASE)
    ctx.set(fetch.program, program)
    ctx.set(fetch.length, length)
    ctx.set(fetch.start, 1)
    await ctx.tick()
    ctx.set(fetch.start, 0)


@pytest.mark.parametrize("name", ["nano", "base", "large"])
@pytest.mark.parametrize("length", [1, 60])
def test_words_come_in_order(name: str, length: int, seed: int) -> None:
    """From any address, with bursts and queues of any size."""
    rng = random.Random(seed)
    params = preset(name).replace(axi_burst=rng.choice([4, 64]))
    fetch = Fetch(params)
    program = rng.randrange(1000)
    taken: list[int] = []
    bursts: list[tuple[int, int]] = []
    words = length * beats_per_instruction(params)

    async def take(ctx: Any) -> None:
        await _launch(ctx, fetch, length, program)
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
    assert bursts == list(Fetch.model(BASE + program, length, params))
    assert taken == [content(BASE + program + i, params) for i in range(words)]


def test_bursts_and_words_come_after_their_latencies() -> None:
    fetch = Fetch(preset("nano"))

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
    fetch = Fetch(preset("nano"))

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


def test_prefetch_stops_when_its_queue_is_full_and_on_halt() -> None:
    params = preset("base")
    fetch = Fetch(params)
    words = 0

    async def count(ctx: Any) -> None:
        nonlocal words
        async for *_, taken in ctx.tick().sample(fetch.r.valid & fetch.r.ready):
            words += taken

    async def never_take(ctx: Any) -> None:
        await _launch(ctx, fetch, 1000)
        for _ in range(600):
            await ctx.tick()
        assert fetch.prefetch_words - params.axi_burst < words <= fetch.prefetch_words
        assert ctx.get(fetch.idle)
        ctx.set(fetch.halt, 1)
        ctx.set(fetch.words.ready, 1)
        for _ in range(600):
            await ctx.tick()
        assert ctx.get(fetch.idle)

    memory = read_memory(fetch.bursts, fetch.r, params, random.Random(1), 3, 1.0, 8)
    run(fetch, never_take, background=[memory, count])
    assert words <= fetch.prefetch_words


def test_a_bus_error_marks_its_word_only() -> None:
    params = preset("base")
    fetch = Fetch(params)
    bad = BASE + PROGRAM + 4 * beats_per_instruction(params) + 1
    marks: list[int] = []

    async def memory(ctx: Any) -> None:
        ctx.set(fetch.bursts.ready, 1)
        while True:
            *_, asked, word, beats = await ctx.tick().sample(
                fetch.bursts.valid & fetch.bursts.ready,
                fetch.bursts.payload.addr,
                fetch.bursts.payload.beats_less_one,
            )
            if asked:
                ctx.set(fetch.bursts.ready, 0)
                for at in range(word, word + beats + 1):
                    answer = {"id": 0, "data": at, "resp": 2 * (at == bad), "last": int(at == word + beats)}
                    ctx.set(fetch.r.payload, answer)
                    ctx.set(fetch.r.valid, 1)
                    await ctx.tick()
                ctx.set(fetch.r.valid, 0)
                ctx.set(fetch.bursts.ready, 1)

    async def take(ctx: Any) -> None:
        await _launch(ctx, fetch, 8)
        ctx.set(fetch.words.ready, 1)
        while len(marks) < 8 * beats_per_instruction(params):
            *_, valid, error = await ctx.tick().sample(fetch.words.valid, fetch.words.payload.error)
            if valid:
                marks.append(error)

    run(fetch, take, background=[memory])
    assert [i for i, mark in enumerate(marks) if mark] == [bad - BASE - PROGRAM]
