"""The memory side of a move: its contiguous runs, one after the other."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.spec.isa import BY_KIND, DRAM_BITS, Kind


def _width(name: str) -> int:
    return BY_KIND[Kind.LOAD].field(name).width


RUN_BITS = _width("n0")

MOVE_LAYOUT = data.StructLayout({name: _width(name) for name in ("dram", "n0", "n1", "n2", "dram_s1", "dram_s2")})
"""What a move does in memory."""


def run_layout(length_bits: int = RUN_BITS) -> data.StructLayout:
    """A run of `words` words from word `offset` on; `last` marks the final one of its instruction."""
    return data.StructLayout({"offset": DRAM_BITS, "words": length_bits, "last": 1})


class RunWalker(wiring.Component):
    """Turns each move into its runs, a run a cycle; `LATENCY` cycles from a move to its first run.

    It takes the next move in the cycle in which the last run of the one before is taken.
    """

    LATENCY = 1

    def __init__(self) -> None:
        super().__init__(
            {
                "i": In(stream.Signature(MOVE_LAYOUT)),
                "o": Out(stream.Signature(run_layout())),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Two nested counters with the address of the run and of its plane."""
        m = Module()
        move = Signal(MOVE_LAYOUT)
        plane = Signal(DRAM_BITS)
        run_left = Signal(move.n1.shape())
        plane_left = Signal(move.n2.shape())
        last_run = Signal()
        m.d.comb += [
            last_run.eq(run_left == 1),
            self.o.payload.offset.eq(move.dram),
            self.o.payload.words.eq(move.n0),
            self.o.payload.last.eq(last_run & (plane_left == 1)),
            self.i.ready.eq(~self.o.valid | (self.o.ready & self.o.payload.last)),
        ]
        with m.If(self.i.ready):
            m.d.sync += self.o.valid.eq(self.i.valid)
            with m.If(self.i.valid):
                m.d.sync += [
                    move.eq(self.i.payload),
                    plane.eq(self.i.payload.dram),
                    run_left.eq(self.i.payload.n1),
                    plane_left.eq(self.i.payload.n2),
                ]
        with m.Elif(self.o.ready):
            with m.If(last_run):
                next_plane = plane + move.dram_s2
                m.d.sync += [plane.eq(next_plane), move.dram.eq(next_plane)]
                m.d.sync += [plane_left.eq(plane_left - 1), run_left.eq(move.n1)]
            with m.Else():
                m.d.sync += [move.dram.eq(move.dram + move.dram_s1), run_left.eq(run_left - 1)]
        return m
