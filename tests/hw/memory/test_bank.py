"""One bank: masked writes, reads `LATENCY` cycles later, and data that stays until the next read."""

from __future__ import annotations

import random
from typing import Any

import pytest

from intloom.hw.memory.bank import Bank
from tests.hw.streams import run

CYCLES = 600


@pytest.mark.parametrize(("depth", "word_bytes"), [(16, 4), (64, 1), (8, 32)])
def test_bytes_are_kept(depth: int, word_bytes: int, rng: random.Random) -> None:
    bank = Bank(depth, word_bytes)
    words = [bytes(word_bytes)] * depth
    compared = 0

    async def bench(ctx: Any) -> None:
        nonlocal compared
        shown: bytes | None = None
        for _ in range(CYCLES):
            read, write = rng.randrange(depth), rng.randrange(depth)
            reads, mask, data = rng.random() < 0.5, rng.getrandbits(word_bytes), rng.randbytes(word_bytes)
            # What a read of the word being written gives is undefined.
            reads = reads and read != write
            ctx.set(bank.read_en, reads)
            ctx.set(bank.read_row, read)
            ctx.set(bank.write_row, write)
            ctx.set(bank.write_mask, mask)
            ctx.set(bank.write_data, int.from_bytes(data, "little"))
            await ctx.tick().repeat(Bank.LATENCY)
            shown = words[read] if reads else shown
            words[write] = Bank.model(words[write], data, mask)
            if shown is not None:
                assert ctx.get(bank.read_data) == int.from_bytes(shown, "little")
                compared += reads

    run(bank, bench)
    assert compared > CYCLES // 4
