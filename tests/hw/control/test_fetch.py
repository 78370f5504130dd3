"""Fetch: every instruction in order, never more asked for than there is room, nothing after halt."""

from __future__ import annotations

import random
from typing import Any

import pytest

from hw.control.fetch import Fetch, beats_per_instruction
from hw.spec.params import HardwareParams, preset
from tests.hw.dma.memory_model import content, read_memory
from tests.hw.streams import run

BASE, PROGRAM = 0x777, 0x3F


def _instruction(number: int, params: HardwareParams) -> int:
    beats = beats_per_instruction(params)
    first = BASE + PROGRAM + number * beats
    return sum(content(first + i, params) << i * params.axi_data_bits for i in range(beats))


async def _launch(ctx: Any, fetch: Fetch, length: int) -> None:
    ctx.set(fetch.base, BASE)
    ctx.set(fetch.program, PROGRAM)
    ctx.set(fetch.length, length)
    ctx.set(fetch.start, 1)
    await ctx.tick()
    ctx.set(fetch.start, 0)


@pytest.mark.parametrize("name", ["nano", "base", "large"])
def test_instructions_come_in_order(name: str, seed: int) -> None:
    rng = random.Random(seed)
    params = preset(name).replace(axi_burst=rng.choice([4, 64]))
    fetch = Fetch(params)
    length = 60
    taken: list[int] = []

    async def take(ctx: Any) -> None:
        await _launch(ctx, fetch, length)
        while len(taken) < length:
            assert not ctx.get(fetch.exhausted)
            ctx.set(fetch.instruction.ready, rng.random() < 0.3)
            *_, valid, ready, word = await ctx.tick().sample(
                fetch.instruction.valid, fetch.instruction.ready, fetch.instruction.payload
            )
            if valid and ready:
                taken.append(word)
        ctx.set(fetch.instruction.ready, 0)
        await ctx.tick()
        assert ctx.get(fetch.exhausted)
        assert ctx.get(fetch.idle)
        assert not ctx.get(fetch.instruction.valid)

    memory = read_memory(fetch.bursts, fetch.r, params, rng, 9, 0.7, params.axi_outstanding)
    run(fetch, take, background=[memory], monitors=[(fetch.bursts, "bursts"), (fetch.instruction, "instructions")])
    assert taken == [_instruction(i, params) for i in range(length)]


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
        assert fetch.ahead_words - params.axi_burst < words <= fetch.ahead_words + beats_per_instruction(params)
        assert ctx.get(fetch.idle)
        ctx.set(fetch.halt, 1)
        ctx.set(fetch.instruction.ready, 1)
        for _ in range(600):
            await ctx.tick()
        assert ctx.get(fetch.idle)

    memory = read_memory(fetch.bursts, fetch.r, params, random.Random(1), 3, 1.0, 8)
    run(fetch, never_take, background=[memory, count])
    assert words <= fetch.ahead_words + beats_per_instruction(params)


def test_a_bus_error_marks_its_instruction_only() -> None:
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
        ctx.set(fetch.instruction.ready, 1)
        while len(marks) < 8:
            *_, valid, error = await ctx.tick().sample(fetch.instruction.valid, fetch.instruction_error)
            if valid:
                marks.append(error)

    run(fetch, take, background=[memory])
    assert marks == [0, 0, 0, 0, 1, 0, 0, 0]
