"""Reduces the words of a window to their bytewise maximum and, optionally, their sum."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Array, Module, Mux, Shape, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from intloom.hw.spec import timing
from intloom.hw.spec.params import HardwareParams
from intloom.hw.vector.window_walker import TAP_LAYOUT

SLIDE_TAPS = timing.SLIDING_TAPS
"""Longest sliding window: each input word is read once, however many windows contain it."""
SUM_BITS = 18


class Pool(wiring.Component):
    """Accumulates the slices of a window's words into maximum and sum.

    For sliding windows every word completes the window that ends with it: a chain of maxima holds, in link k, the
    maximum of the last k + 1 words, and the window length selects the link. State per slice is kept in a small memory
    between its turns, or in a second register when a word has two slices.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    valid, index, part, tap
        A slice, its index in the word, and whether its word opens or completes a window.
    slide, link
        Sliding windows, and the link of the chain to output.
    result_valid
        Pulse: a window is complete.
    maximum
        Its bytewise maximum; a window of one word yields the word.
    total
        Its sums; zero if the hardware has none.

    Handshake
    ---------
    No back-pressure: a slice is taken in every cycle with `valid`. Outputs hold until the next slice.

    Timing
    ------
    One slice a cycle. From the last word's slice to that slice of the result: `LATENCY` = 1 cycle.

    Requirements
    ------------
    Slices of a word come in order. `slide` and `link` are stable from the cycle before an operation's first slice.

    Reset and faults
    ----------------
    Soft reset clears `result_valid`; the first word of a window overwrites the state. There are no faults.
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
        """Per lane, the state with this slice and the outputs."""
        m = Module()
        # No reset: the first word of a window overwrites the state.
        after = Signal(data.ArrayLayout(self._state, self._lanes), reset_less=True)
        before = self._slice_state(m, after) if self._slices > 1 else after
        # Stable long before the first slice: a local copy cuts the route from the operation register.
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

    def _slice_state(self, m: Module, after: data.View[data.ArrayLayout]) -> data.View[data.ArrayLayout]:
        """The state of this slice: with two slices, a register one slice older; with more, a memory word.

        The memory is written one cycle after the state changes, and a slice returns no earlier than four cycles later.
        """
        if self._slices == 2:
            older = Signal.like(after, reset_less=True)
            with m.If(self.valid):
                m.d.sync += older.eq(after)
            return older
        # Distributed RAM in place of a register per slice and a multiplexer; a combinational read port adds no cycle.
        memory = Memory(shape=after.shape(), depth=self._slices, init=[])
        m.submodules.memory = memory
        write, read = memory.write_port(), memory.read_port(domain="comb")
        # One cycle later, because `after` is the register: the memory needs no copy of the next state's logic.
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
