"""Word assembler: slices become rotated words."""

import random
from typing import Any

import pytest

from intloom.hw.vector.slicer import Slicer
from intloom.hw.vector.word_assembler import WordAssembler
from tests.hw.streams import made, run
from tests.hw.vector.slices import WIDTHS, idle_cycles, record, to_bytes, to_int, with_lanes


@pytest.mark.parametrize("lanes", WIDTHS)
def test_words_are_assembled_rotated(lanes: int, rng: random.Random) -> None:
    for amount in range(8):
        assembler = made(WordAssembler, with_lanes(lanes))
        words = [rng.randbytes(8) for _ in range(12)]
        found: list[int] = []

        async def bench(
            ctx: Any, assembler: WordAssembler = assembler, words: Any = words, amount: int = amount
        ) -> None:
            ctx.set(assembler.amount, amount)
            await ctx.tick()
            for word in words:
                for part in Slicer.model(word, lanes):
                    await idle_cycles(ctx, rng, assembler.valid)
                    ctx.set(assembler.part, to_int(part))
                    await ctx.tick()
            ctx.set(assembler.valid, 0)
            await ctx.tick().repeat(WordAssembler.LATENCY + 1)

        run(assembler, bench, background=[record(assembler.result_valid, assembler.result, found)])
        assert [to_bytes(n, 8) for n in found] == [WordAssembler.model(word, amount) for word in words]
