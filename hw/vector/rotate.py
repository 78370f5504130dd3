"""Rotates the bytes of a word."""

from __future__ import annotations

from amaranth.hdl import Module, Mux
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2


class ByteRotator(wiring.Component):
    """Result byte (i + amount) mod word is byte i; `LATENCY` cycles.

    Parameters
    ----------
    word_bytes
        Bytes in a word, a power of two.

    Members
    -------
    amount
        Must hold while words are under way.
    valid, word
        A word.
    result_valid, result
        The rotated word.
    """

    LATENCY = 1

    def __init__(self, word_bytes: int) -> None:
        self._word_bytes = word_bytes
        super().__init__(
            {
                "amount": In(exact_log2(word_bytes)),
                "valid": In(1),
                "word": In(8 * word_bytes),
                "result_valid": Out(1),
                "result": Out(8 * word_bytes),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """A choice for every bit of the amount."""
        m = Module()
        word = self.word
        for bit in range(len(self.amount)):
            word = Mux(self.amount[bit], word.rotate_left(8 << bit), word)
        m.d.sync += self.result_valid.eq(self.valid)
        with m.If(self.valid):
            m.d.sync += self.result.eq(word)
        return m
