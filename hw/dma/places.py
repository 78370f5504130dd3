"""The local side of a move: the address of each word in the scratchpad or the weight memory."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.spec.isa import BY_KIND, COUNT_BITS, SCRATCH_BITS, Kind

_FIELDS = ("local", "n0", "n1", "n2", "local_s1", "local_s2")

LOCAL_LAYOUT = data.StructLayout(
    {
        "target": BY_KIND[Kind.LOAD].field("target").width,
        **{name: BY_KIND[Kind.LOAD].field(name).width for name in _FIELDS},
        "index": COUNT_BITS,
    }
)
"""What a move does in local memory, with the number of its instruction."""

PLACE_LAYOUT = data.StructLayout({"target": 1, "addr": SCRATCH_BITS, "index": COUNT_BITS, "last": 1})
"""One word's place; `last` marks the final word of its instruction."""


class PlaceWalker(wiring.Component):
    """Turns each move into the local addresses of its words, in order, a word a cycle without gaps between moves.

    The first address comes `LATENCY` cycles after its move. Addresses are modulo 2**20.
    """

    LATENCY = 1

    def __init__(self) -> None:
        super().__init__(
            {
                "i": In(stream.Signature(LOCAL_LAYOUT)),
                "o": Out(stream.Signature(PLACE_LAYOUT)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Three nested counters; `move.local` is the word's address."""
        m = Module()
        move = Signal(LOCAL_LAYOUT)
        run, plane = Signal(SCRATCH_BITS), Signal(SCRATCH_BITS)
        word_left, run_left, plane_left = (Signal(move[n].shape(), name=f"{n}_left") for n in ("n0", "n1", "n2"))
        last_word, last_run = Signal(), Signal()
        m.d.comb += [
            last_word.eq(word_left == 1),
            last_run.eq(run_left == 1),
            self.o.payload.target.eq(move.target),
            self.o.payload.addr.eq(move.local),
            self.o.payload.index.eq(move.index),
            self.o.payload.last.eq(last_word & last_run & (plane_left == 1)),
            self.i.ready.eq(~self.o.valid | (self.o.ready & self.o.payload.last)),
        ]
        with m.If(self.i.ready):
            m.d.sync += self.o.valid.eq(self.i.valid)
            with m.If(self.i.valid):
                start = self.i.payload
                m.d.sync += [move.eq(start), run.eq(start.local), plane.eq(start.local)]
                m.d.sync += [word_left.eq(start.n0), run_left.eq(start.n1), plane_left.eq(start.n2)]
        with m.Elif(self.o.ready):
            with m.If(~last_word):
                m.d.sync += [move.local.eq(move.local + 1), word_left.eq(word_left - 1)]
            with m.Elif(~last_run):
                next_run = run + move.local_s1
                m.d.sync += [move.local.eq(next_run), run.eq(next_run)]
                m.d.sync += [word_left.eq(move.n0), run_left.eq(run_left - 1)]
            with m.Else():
                next_plane = plane + move.local_s2
                m.d.sync += [move.local.eq(next_plane), run.eq(next_plane), plane.eq(next_plane)]
                m.d.sync += [word_left.eq(move.n0), run_left.eq(move.n1), plane_left.eq(plane_left - 1)]
        return m
