"""Cuts the operands' words into slices of as many bytes as the arithmetic has lanes."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from intloom.hw.pipeline import output_register
from intloom.hw.spec.params import HardwareParams
from intloom.hw.vector.window import TAP_LAYOUT


class Slicer(wiring.Component):
    """Works through a pair of words, a slice or a byte a cycle; slices come out `LATENCY` cycles later.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    bytewise
        Hand out single bytes of `a`; must hold while there are words.
    go, a, b, tap
        A pair of words, and the place of `a` in its window. They must stay until `step`.
    step
        This cycle's slice or byte is the words' last.
    valid, index, slice_a, slice_b, slice_tap
        A slice of each word, and which.
    byte_valid, byte
        A byte of `a`.
    """

    LATENCY = 1

    def __init__(self, params: HardwareParams) -> None:
        self._lanes = params.vector_lanes
        self._word_bytes = params.word_bytes
        word, part = 8 * params.word_bytes, 8 * params.vector_lanes
        super().__init__(
            {
                "bytewise": In(1),
                "go": In(1),
                "a": In(word),
                "b": In(word),
                "tap": In(TAP_LAYOUT),
                "step": Out(1),
                "valid": Out(1),
                "index": Out(range(params.vector_slices)),
                "slice_a": Out(part),
                "slice_b": Out(part),
                "slice_tap": Out(TAP_LAYOUT),
                "byte_valid": Out(1),
                "byte": Out(8),
            }
        )

    @staticmethod
    def model(word: bytes, lanes: int) -> list[bytes]:
        """A word's slices, in order."""
        return [word[at : at + lanes] for at in range(0, len(word), lanes)]

    def elaborate(self, platform: object) -> Module:
        """Count bytes through a word; its high bits choose the slice, its low bits the byte of a slice."""
        m = Module()
        low_bits = exact_log2(self._lanes)
        at = Signal(range(self._word_bytes))
        place = Signal(low_bits)
        after = Signal(len(at) + 1)
        m.d.comb += [
            after.eq(at + Mux(self.bytewise, 1, self._lanes)),
            self.step.eq(self.go & after[-1]),
            self.byte.eq(self.slice_a.word_select(place, 8)),
        ]
        slice_a, slice_b = output_register(m, self.slice_a), output_register(m, self.slice_b)
        m.d.sync += [self.valid.eq(self.go & ~self.bytewise), self.byte_valid.eq(self.go & self.bytewise)]
        with m.If(self.go):
            m.d.sync += [
                at.eq(after),
                place.eq(at[:low_bits]),
                self.index.eq(at[low_bits:]),
                slice_a.eq(self.a.word_select(at[low_bits:], 8 * self._lanes)),
                slice_b.eq(self.b.word_select(at[low_bits:], 8 * self._lanes)),
                self.slice_tap.eq(self.tap),
            ]
        return m
