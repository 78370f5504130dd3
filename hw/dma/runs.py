"""The contiguous runs of a move, one after the other, in memory and in local memory."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.spec.isa import BY_KIND, COUNT_BITS, DRAM_BITS, SCRATCH_BITS, Kind


def _width(name: str) -> int:
    return BY_KIND[Kind.LOAD].field(name).width


RUN_BITS = _width("n0")

_FIELDS = ("dram", "n0", "n1", "n2", "dram_s1", "dram_s2", "target", "local", "local_s1", "local_s2")
MOVE_LAYOUT = data.StructLayout({**{name: _width(name) for name in _FIELDS}, "index": COUNT_BITS})
"""A LOAD or STORE without its waits, with the number of its instruction."""

MEMORY_RUN_LAYOUT = data.StructLayout({"offset": DRAM_BITS, "words": RUN_BITS, "last": 1})
"""A run of `words` words of memory from word `offset` on; `last` marks the final one of its instruction."""

LOCAL_RUN_LAYOUT = data.StructLayout(
    {"target": _width("target"), "addr": SCRATCH_BITS, "words": RUN_BITS, "last": 1, "index": COUNT_BITS}
)
"""The same run in local memory."""

RUN_LAYOUT = data.StructLayout({"memory": MEMORY_RUN_LAYOUT, "local": LOCAL_RUN_LAYOUT})


class RunWalker(wiring.Component):
    """Turns each move into its runs, a run a cycle; `LATENCY` cycles from a move to its first run.

    It takes the next move in the cycle in which the last run of the one before is taken. Local addresses are modulo
    2**20.
    """

    LATENCY = 1

    def __init__(self) -> None:
        super().__init__(
            {
                "i": In(stream.Signature(MOVE_LAYOUT)),
                "o": Out(stream.Signature(RUN_LAYOUT)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Two nested counters; `move.dram` and `move.local` are the run's addresses, beside them stand the plane's."""
        m = Module()
        move = Signal(MOVE_LAYOUT)
        plane, local_plane = Signal(DRAM_BITS), Signal(SCRATCH_BITS)
        run_left, plane_left = Signal(move.n1.shape()), Signal(move.n2.shape())
        last_run = Signal()
        self._offer(m, move, last_run & (plane_left == 1))
        m.d.comb += [
            last_run.eq(run_left == 1),
            self.i.ready.eq(~self.o.valid | (self.o.ready & self.o.payload.memory.last)),
        ]
        with m.If(self.i.ready):
            m.d.sync += self.o.valid.eq(self.i.valid)
            with m.If(self.i.valid):
                start = self.i.payload
                m.d.sync += [move.eq(start), plane.eq(start.dram), local_plane.eq(start.local)]
                m.d.sync += [run_left.eq(start.n1), plane_left.eq(start.n2)]
        with m.Elif(self.o.ready):
            with m.If(last_run):
                next_plane, next_local = plane + move.dram_s2, local_plane + move.local_s2
                m.d.sync += [plane.eq(next_plane), move.dram.eq(next_plane)]
                m.d.sync += [local_plane.eq(next_local), move.local.eq(next_local)]
                m.d.sync += [plane_left.eq(plane_left - 1), run_left.eq(move.n1)]
            with m.Else():
                m.d.sync += [move.dram.eq(move.dram + move.dram_s1), move.local.eq(move.local + move.local_s1)]
                m.d.sync += run_left.eq(run_left - 1)
        return m

    def _offer(self, m: Module, move: data.View[data.StructLayout], last: Signal) -> None:
        memory, local = self.o.payload.memory, self.o.payload.local
        m.d.comb += [
            memory.offset.eq(move.dram),
            memory.words.eq(move.n0),
            memory.last.eq(last),
            local.target.eq(move.target),
            local.addr.eq(move.local),
            local.words.eq(move.n0),
            local.last.eq(last),
            local.index.eq(move.index),
        ]
