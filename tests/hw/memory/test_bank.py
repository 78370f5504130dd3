"""One bank: masked writes, reads `LATENCY` cycles later, and data that stays until the next read."""

import random
from typing import Any

import pytest

from intloom.hw.memory import bank as bank_module
from intloom.hw.memory.bank import Bank
from intloom.hw.memory.parity import BYTE_GRANULE, ParityChecker
from intloom.hw.spec.isa import Unit
from tests.hw.memory.stored import flip, stored_words
from tests.hw.streams import made, run

CYCLES = 600


@pytest.mark.parametrize("parity", [False, True])
@pytest.mark.parametrize(("depth", "word_bytes"), [(16, 4), (64, 1), (8, 32)])
def test_bytes_are_kept(depth: int, word_bytes: int, parity: bool, rng: random.Random) -> None:
    bank = made(Bank, depth, word_bytes, parity=parity)
    words = [rng.randbytes(word_bytes) for _ in range(depth)]
    full, compared = (1 << word_bytes) - 1, 0

    async def bench(ctx: Any) -> None:
        nonlocal compared
        ctx.set(bank.write_mask, full)
        for row, word in enumerate(words):
            ctx.set(bank.write_row, row)
            ctx.set(bank.write_data, int.from_bytes(word, "little"))
            await ctx.tick()
        shown: bytes | None = None
        for _ in range(CYCLES):
            read, write = rng.randrange(depth), rng.randrange(depth)
            reads, data = rng.random() < 0.5, rng.randbytes(word_bytes)
            mask = rng.choice((full, rng.getrandbits(word_bytes)))
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
            assert not (parity and ctx.get(bank.error.valid))
            if shown is not None:
                assert ctx.get(bank.read_data) == int.from_bytes(shown, "little")
                compared += reads

    run(bank, bench)
    assert compared > CYCLES // 4


@pytest.mark.parametrize(("depth", "word_bytes"), [(16, 4), (64, 1), (8, 32)])
def test_a_flipped_bit_of_any_lane_is_an_error_until_its_byte_is_written(
    depth: int, word_bytes: int, monkeypatch: pytest.MonkeyPatch, rng: random.Random
) -> None:
    """Each data bit and each parity bit; a write of the other bytes changes nothing."""
    created = stored_words(monkeypatch, bank_module)
    full = (1 << word_bytes) - 1
    bank = Bank(depth, word_bytes, parity=True)

    async def write(ctx: Any, row: int, mask: int) -> None:
        ctx.set(bank.write_row, row)
        ctx.set(bank.write_data, rng.getrandbits(8 * word_bytes))
        ctx.set(bank.write_mask, mask)
        await ctx.tick()
        ctx.set(bank.write_mask, 0)
        await ctx.tick()

    async def error(ctx: Any, row: int) -> bool:
        """Read a row; the error comes in its own cycle alone, with row and reader."""
        unit = rng.choice((Unit.MAC, Unit.VEC, Unit.STORE))
        ctx.set(bank.read_row, row)
        ctx.set(bank.reader, unit)
        ctx.set(bank.read_en, 1)
        await ctx.tick()
        ctx.set(bank.read_en, 0)
        ctx.set(bank.read_row, row ^ 1)
        ctx.set(bank.reader, unit ^ 1)
        found = []
        for _ in range(Bank.LATENCY + ParityChecker.LATENCY + 2):
            found.append(ctx.get(bank.error.valid))
            if found[-1]:
                assert (ctx.get(bank.error.address), ctx.get(bank.error.unit)) == (row, unit)
            await ctx.tick()
        at = Bank.LATENCY + ParityChecker.LATENCY - 1
        assert not any(found[:at] + found[at + 1 :])
        return bool(found[at])

    async def bench(ctx: Any) -> None:
        for row in range(depth):
            await write(ctx, row, full)
        for bit in range(BYTE_GRANULE * word_bytes):
            row, lane = rng.randrange(depth), 1 << bit // BYTE_GRANULE
            assert not await error(ctx, row)
            flip(ctx, created[0], row, bit)
            assert await error(ctx, row), bit
            assert not await error(ctx, (row + 1) % depth)
            await write(ctx, row, full & ~lane)
            assert await error(ctx, row), bit
            await write(ctx, row, lane)
            assert not await error(ctx, row), bit

    run(bank, bench)
