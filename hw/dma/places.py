"""The local side of a move: the address of each word in the scratchpad or the weight memory."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.spec.isa import COUNT_BITS, SCRATCH_BITS

from .runs import LOCAL_RUN_LAYOUT

PLACE_LAYOUT = data.StructLayout({"target": 1, "addr": SCRATCH_BITS, "index": COUNT_BITS, "last": 1})
"""One word's place; `last` marks the final word of its instruction."""


class PlaceWalker(wiring.Component):
    """Turns each run into the local addresses of its words, in order, a word a cycle without gaps between runs.

    The first address comes `LATENCY` cycles after its run. Addresses are modulo 2**20.
    """

    LATENCY = 1

    def __init__(self) -> None:
        super().__init__(
            {
                "i": In(stream.Signature(LOCAL_RUN_LAYOUT)),
                "o": Out(stream.Signature(PLACE_LAYOUT)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Count through a run: `run.addr` is the word's address, `run.words` what is left."""
        m = Module()
        run = Signal(LOCAL_RUN_LAYOUT)
        last_word = Signal()
        m.d.comb += [
            last_word.eq(run.words == 1),
            self.o.payload.target.eq(run.target),
            self.o.payload.addr.eq(run.addr),
            self.o.payload.index.eq(run.index),
            self.o.payload.last.eq(last_word & run.last),
            self.i.ready.eq(~self.o.valid | (self.o.ready & last_word)),
        ]
        with m.If(self.i.ready):
            m.d.sync += self.o.valid.eq(self.i.valid)
            with m.If(self.i.valid):
                m.d.sync += run.eq(self.i.payload)
        with m.Elif(self.o.ready):
            m.d.sync += [run.addr.eq(run.addr + 1), run.words.eq(run.words - 1)]
        return m
