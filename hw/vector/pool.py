"""Gathers the words of a window: their bytewise maximum and, optionally, their sum."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Array, Module, Mux, Shape, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from intloom.hw.spec import timing
from intloom.hw.spec.params import HardwareParams
from intloom.hw.vector.window import TAP_LAYOUT

SLIDE_TAPS = timing.SLIDING_TAPS
"""The longest window that slides: each input word is then read once, however many windows it lies in."""
SUM_BITS = 18


class Pool(wiring.Component):
    """Takes a slice of a word a cycle; from a window's last word come slices of its maximum and sum, `LATENCY` later.

    Of a sliding window, every word is the last of the window that ends with it. A chain of maxima serves it: link k
    holds the maximum of the last k+1 words, and the window's length selects the link. Between its turns, what is known
    of a slice lies in a small memory, or, of two slices, in a second register.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    valid, index, part, tap
        A slice, which one it is, and whether its word opens and completes a window. Slices come in order.
    slide, link
        Windows slide, and which link of the chain is theirs; they hold from the cycle before a first slice on.
    result_valid
        A window is complete.
    maximum
        Its maximum, byte by byte; a window of one word gives the word.
    total
        Its sums; zero when there are none.
    """

    LATENCY = 1

    def __init__(self, params: HardwareParams) -> None:
        self._lanes = params.vector_lanes
        self._slices = params.vector_slices
        members: dict[str, Shape | data.ArrayLayout] = {"links": data.ArrayLayout(signed(8), SLIDE_TAPS)}
        if params.vector_average:
            members["total"] = signed(SUM_BITS)
        self._state = data.StructLayout(members)
        super().__init__(
            {
                "valid": In(1),
                "index": In(range(self._slices)),
                "part": In(8 * self._lanes),
                "tap": In(TAP_LAYOUT),
                "slide": In(1),
                "link": In(range(SLIDE_TAPS)),
                "result_valid": Out(1),
                "maximum": Out(data.ArrayLayout(signed(8), self._lanes)),
                "total": Out(data.ArrayLayout(signed(SUM_BITS), self._lanes)),
            }
        )

    @staticmethod
    def model(window: Sequence[bytes]) -> tuple[list[int], list[int]]:
        """A window's maximum and its sums."""
        lanes = [[byte - 256 if byte > 127 else byte for byte in lane] for lane in zip(*window, strict=True)]
        return [max(lane) for lane in lanes], [sum(lane) for lane in lanes]

    def elaborate(self, platform: object) -> Module:
        """What is known of every byte, and what is known with this byte."""
        m = Module()
        after = Signal(data.ArrayLayout(self._state, self._lanes), reset_less=True)
        before = self._remember(m, after) if self._slices > 1 else after
        # Told long before the first slice, and near.
        self._slide, link = Signal(reset_less=True), Signal.like(self.link, reset_less=True)
        m.d.sync += [self._slide.eq(self.slide), link.eq(self.link)]
        m.d.sync += self.result_valid.eq(self.valid & self.tap.last)
        for lane in range(self._lanes):
            byte = self.part.word_select(lane, 8).as_signed()
            links = [after[lane].links[k] for k in range(SLIDE_TAPS)]
            m.d.comb += self.maximum[lane].eq(Array(links)[link])
            with m.If(self.valid):
                self._chain(m, byte, before[lane].links, after[lane].links)
            if "total" in self._state.members:
                m.d.comb += self.total[lane].eq(after[lane].total)
                with m.If(self.valid):
                    m.d.sync += after[lane].total.eq(Mux(self.tap.first, 0, before[lane].total) + byte)
        return m

    def _remember(self, m: Module, after: data.View[data.ArrayLayout]) -> data.View[data.ArrayLayout]:
        """What was known of this slice when it came last: of two, the slice before the last one that came.

        One of more comes again when what was made of it has been written.
        """
        if self._slices == 2:
            older = Signal.like(after, reset_less=True)
            with m.If(self.valid):
                m.d.sync += older.eq(after)
            return older
        memory = Memory(shape=after.shape(), depth=self._slices, init=[])
        m.submodules.memory = memory
        write, read = memory.write_port(), memory.read_port(domain="comb")
        m.d.sync += [write.en.eq(self.valid), write.addr.eq(self.index)]
        m.d.comb += [write.data.eq(after), read.addr.eq(self.index)]
        return read.data

    def _chain(self, m: Module, byte: Value, before: Value, after: Value) -> None:
        first, slide = self.tap.first, self._slide
        m.d.sync += after[0].eq(Mux(first | slide | (byte > before[0]), byte, before[0]))
        with m.If(first | slide):
            m.d.sync += [
                after[k].eq(Mux(first | (byte > before[k - 1]), byte, before[k - 1])) for k in range(1, SLIDE_TAPS)
            ]
