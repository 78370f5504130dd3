"""The parity checker: every byte with every flipped bit, granules of any width, reads of any distance."""

import random
from typing import Any

import pytest
from amaranth.hdl import Const

from intloom.hw.memory.parity import BYTE_GRANULE, ParityChecker, add_byte_parity, drop_byte_parity
from intloom.hw.spec.isa import Unit
from tests.hw.streams import made, run

CYCLES = 400


def _encoded(checker: ParityChecker, ctx: Any, word: int, bits: int) -> int:
    """The word with parity bits, as hardware computes them."""
    coded = add_byte_parity(Const(word, bits))
    assert ctx.get(drop_byte_parity(coded)) == word
    return int(ctx.get(coded))


def test_no_flipped_bit_of_a_byte_escapes() -> None:
    """All 256 bytes: the code has even parity, and every word at a distance of one bit has odd parity."""
    checker = made(ParityChecker, BYTE_GRANULE, BYTE_GRANULE, 8, 0)
    found: dict[int, int] = {}

    async def bench(ctx: Any) -> None:
        codes = {_encoded(checker, ctx, byte, 8) for byte in range(256)}
        assert len(codes) == 256
        flipped = {code ^ 1 << bit for code in codes for bit in range(BYTE_GRANULE)}
        assert codes.isdisjoint(flipped)
        for word in range(1 << BYTE_GRANULE):
            ctx.set(checker.word, word)
            ctx.set(checker.read, 1)
            await ctx.tick().repeat(ParityChecker.LATENCY)
            found[word] = ctx.get(checker.error.valid)
        assert {word for word, error in found.items() if error} == flipped
        assert {word for word, error in found.items() if not error} == codes

    run(checker, bench)
    assert len(found) == 512


@pytest.mark.parametrize(("granules", "granule_bits"), [(4, 9), (32, 9), (1, 33), (1, 129), (1, 257)])
@pytest.mark.parametrize("latency", [0, 3])
def test_errors_have_the_unit_and_address_of_their_read(
    granules: int, granule_bits: int, latency: int, rng: random.Random
) -> None:
    """Random reads of words with no, one or several flipped bits; words between reads are no errors."""
    bits = granules * granule_bits
    checker = made(ParityChecker, bits, granule_bits, 10, latency)
    delay = latency + ParityChecker.LATENCY
    errors = 0

    async def bench(ctx: Any) -> None:
        nonlocal errors
        reads: list[tuple[bool, Unit, int, int]] = []
        for cycle in range(CYCLES):
            word = 0
            for granule in range(granules):
                part = rng.getrandbits(granule_bits - 1)
                word |= (part | part.bit_count() % 2 << granule_bits - 1) << granule * granule_bits
            assert not ParityChecker.model(word, granules, granule_bits)
            for bit in rng.sample(range(bits), rng.choice((0, 0, 1, 1, 2, 3))):
                word ^= 1 << bit
            reads.append((rng.random() < 0.7, rng.choice((Unit.MAC, Unit.VEC, Unit.STORE)), rng.getrandbits(10), word))
            valid, unit, address, _ = reads[-1]
            ctx.set(checker.read, valid)
            ctx.set(checker.unit, unit)
            ctx.set(checker.address, address)
            ctx.set(checker.word, reads[cycle - latency][3] if cycle >= latency else 1)
            if cycle >= delay:
                valid, unit, address, word = reads[cycle - delay]
                odd = valid and ParityChecker.model(word, granules, granule_bits)
                assert ctx.get(checker.error.valid) == odd
                if odd:
                    assert (ctx.get(checker.error.unit), ctx.get(checker.error.address)) == (unit, address)
                    errors += 1
            await ctx.tick()

    run(checker, bench)
    assert CYCLES // 8 < errors < CYCLES // 2 + 60
