"""Gathers the words of a window: their bytewise maximum and, optionally, their sum."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from .window import TAP_LAYOUT

SLIDE_TAPS = 5
"""The longest window that slides: each input word is then read once, however many windows it lies in."""
SUM_BITS = 18


class Pool(wiring.Component):
    """Takes a word a cycle; `LATENCY` cycles after a window's last word its maximum and its sum are there.

    Of a sliding window, every word is the last of the window that ends with it. A chain of maxima serves it: link k
    holds the maximum of the last k+1 words, and the window's length selects the link.

    Parameters
    ----------
    word_bytes
        Bytes in a word.
    with_sum
        Whether sums are made at all.

    Members
    -------
    valid, word, tap
        A word, and whether it opens and completes a window.
    slide, link
        Windows slide, and which link of the chain is theirs.
    result_valid
        A window is complete.
    maximum
        Its maximum, byte by byte; a window of one word gives the word.
    total
        Its sums; zero when there are none.
    """

    LATENCY = 1

    def __init__(self, word_bytes: int, with_sum: bool) -> None:
        self._word_bytes = word_bytes
        self._with_sum = with_sum
        super().__init__(
            {
                "valid": In(1),
                "word": In(8 * word_bytes),
                "tap": In(TAP_LAYOUT),
                "slide": In(1),
                "link": In(range(SLIDE_TAPS)),
                "result_valid": Out(1),
                "maximum": Out(data.ArrayLayout(signed(8), word_bytes)),
                "total": Out(data.ArrayLayout(signed(SUM_BITS), word_bytes)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """A lane a byte."""
        m = Module()
        m.d.sync += self.result_valid.eq(self.valid & self.tap.last)
        for lane in range(self._word_bytes):
            byte = self.word.word_select(lane, 8).as_signed()
            self._chain(m, lane, byte)
            if self._with_sum:
                total = Signal(signed(SUM_BITS), name=f"total{lane}", reset_less=True)
                m.d.comb += self.total[lane].eq(total)
                with m.If(self.valid):
                    m.d.sync += total.eq(Mux(self.tap.first, 0, total) + byte)
        return m

    def _chain(self, m: Module, lane: int, byte: Signal) -> None:
        links = [Signal(signed(8), name=f"link{k}_{lane}", reset_less=True) for k in range(SLIDE_TAPS)]
        m.d.comb += self.maximum[lane].eq(Array(links)[self.link])
        with m.If(self.valid):
            with m.If(self.tap.first):
                m.d.sync += Cat(links).eq(Cat(byte for _ in links))
            with m.Else():
                m.d.sync += links[0].eq(Mux(~self.slide & (links[0] > byte), links[0], byte))
                with m.If(self.slide):
                    m.d.sync += [
                        links[k].eq(Mux(links[k - 1] > byte, links[k - 1], byte)) for k in range(1, SLIDE_TAPS)
                    ]
