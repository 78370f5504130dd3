"""CRCs in hardware: what a word adds, and what the CRC before becomes, for each width of a word."""

import random
from typing import Any

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from intloom.hw.crc import crc_part, word_part
from intloom.hw.spec.constant_check import POLYNOMIAL as CONSTANTS
from intloom.hw.spec.program_check import CRC_BITS, POLYNOMIAL, shift_bit


class _Parts(wiring.Component):
    """Both parts of a CRC."""

    def __init__(self, bits: int, polynomial: int) -> None:
        self._polynomial = polynomial
        super().__init__({"word": In(bits), "crc": In(CRC_BITS), "of_word": Out(CRC_BITS), "of_crc": Out(CRC_BITS)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += [
            self.of_word.eq(word_part(m, self.word, self._polynomial)),
            self.of_crc.eq(crc_part(m, self.crc, len(self.word), self._polynomial)),
        ]
        return m


def _after(crc: int, word: int, bits: int, polynomial: int) -> int:
    for number in range(bits):
        crc = shift_bit(crc, word >> number & 1, polynomial)
    return crc


@pytest.mark.parametrize("polynomial", [POLYNOMIAL, CONSTANTS], ids=["program", "constants"])
@pytest.mark.parametrize("bits", [32, 64, 128, 256])
def test_every_bit_of_word_and_crc(bits: int, polynomial: int, rng: random.Random) -> None:
    """Both parts are XORs alone, so values with one bit, and 0, tell all of them."""
    parts = _Parts(bits, polynomial)
    words = [0, *(1 << n for n in range(bits)), *(rng.getrandbits(bits) for _ in range(5))]
    crcs = [0, *(1 << n for n in range(CRC_BITS)), *(rng.getrandbits(CRC_BITS) for _ in range(5))]

    async def check(ctx: Any) -> None:
        for word in words:
            ctx.set(parts.word, word)
            assert ctx.get(parts.of_word) == _after(0, word, bits, polynomial)
        for crc in crcs:
            ctx.set(parts.crc, crc)
            assert ctx.get(parts.of_crc) == _after(crc, 0, bits, polynomial)

    simulator = Simulator(parts)
    simulator.add_testbench(check)
    simulator.run()
