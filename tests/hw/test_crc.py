"""CRCs in hardware: what a CRC becomes by a word, for each width of a word."""

import random
from typing import Any

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from intloom.hw.crc import crc_after
from intloom.hw.spec.constant_check import POLYNOMIAL as CONSTANTS
from intloom.hw.spec.program_check import CRC_BITS, POLYNOMIAL, shift_bit


class _Step(wiring.Component):
    """A CRC after a word."""

    def __init__(self, bits: int, polynomial: int) -> None:
        self._polynomial = polynomial
        super().__init__({"word": In(bits), "crc": In(CRC_BITS), "after": Out(CRC_BITS)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.after.eq(crc_after(m, self.crc, self.word, self._polynomial))
        return m


def _after(crc: int, word: int, bits: int, polynomial: int) -> int:
    for number in range(bits):
        crc = shift_bit(crc, word >> number & 1, polynomial)
    return crc


@pytest.mark.parametrize("polynomial", [POLYNOMIAL, CONSTANTS], ids=["program", "constants"])
@pytest.mark.parametrize("bits", [32, 64, 128, 256])
def test_every_bit_of_word_and_crc(bits: int, polynomial: int, rng: random.Random) -> None:
    """Only XORs, so values with one bit, and 0, tell all of them."""
    step = _Step(bits, polynomial)
    words = [0, *(1 << n for n in range(bits)), *(rng.getrandbits(bits) for _ in range(5))]
    crcs = [0, *(1 << n for n in range(CRC_BITS)), *(rng.getrandbits(CRC_BITS) for _ in range(5))]
    pairs = [*((crc, 0) for crc in crcs), *((0, word) for word in words), *zip(crcs, words, strict=False)]

    async def check(ctx: Any) -> None:
        for crc, word in pairs:
            ctx.set(step.crc, crc)
            ctx.set(step.word, word)
            assert ctx.get(step.after) == _after(crc, word, bits, polynomial)

    simulator = Simulator(step)
    simulator.add_testbench(check)
    simulator.run()
