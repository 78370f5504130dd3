"""Cuts runs into AXI bursts, and joins runs that touch."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hw.bus.axi4 import BOUNDARY_BYTES, LENGTH_BITS
from hw.spec.params import HardwareParams

from .runs import RUN_BITS, run_layout


def word_address_bits(params: HardwareParams) -> int:
    """Width of a memory address that counts words."""
    return params.axi_addr_bits - exact_log2(params.word_bytes)


def burst_layout(params: HardwareParams) -> data.StructLayout:
    """A burst of `beats_less_one + 1` beats from word `addr` on; `last` marks the final one of its instruction."""
    return data.StructLayout({"addr": word_address_bits(params), "beats_less_one": LENGTH_BITS, "last": 1})


class BurstSplitter(wiring.Component):
    """Turns runs into bursts of at most `axi_burst` beats that never cross 4 KiB, at most one burst a cycle.

    A run that starts where the one before ended goes on in the same burst, so rows as wide as their tensor
    travel in long bursts. Each run takes one cycle, or one for each burst that ends in it.

    Parameters
    ----------
    params
        The accelerator's parameters.
    length_bits
        Width of a run's length.

    Members
    -------
    base
        First word of the memory, added to every offset.
    i
        Runs.
    o
        Bursts, `LATENCY` cycles after their last run at the earliest.
    """

    LATENCY = 1

    def __init__(self, params: HardwareParams, length_bits: int = RUN_BITS) -> None:
        self._params = params
        self._length_bits = length_bits
        super().__init__(
            {
                "base": In(word_address_bits(params)),
                "i": In(stream.Signature(run_layout(length_bits))),
                "o": Out(stream.Signature(burst_layout(params))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Register the run at work, see what of it fits the burst, then go on, join or start anew."""
        m = Module()
        run = Signal(run_layout(self._length_bits))
        active = Signal()
        start = Signal(word_address_bits(self._params))
        pending = Signal(LENGTH_BITS + 1)
        room = Signal(LENGTH_BITS + 1)
        take = Signal(LENGTH_BITS + 1)
        fits = Signal()
        full = Signal()
        # Here `run.offset` is the word after the run's end: where a run that joins must start.
        joins = Signal()
        m.d.comb += [
            fits.eq(run.words <= room),
            full.eq(run.words >= room),
            take.eq(run.words[: LENGTH_BITS + 1]),
            joins.eq(self.i.valid & (self.i.payload.offset == run.offset)),
        ]
        with m.If(~fits):
            m.d.comb += take.eq(room)
        known = Signal()
        emit = Signal()
        step = Signal()
        m.d.comb += [
            known.eq(~fits | run.last | self.i.valid),
            emit.eq(active & known & (full | run.last | ~joins)),
            self.o.valid.eq(emit),
            self.o.payload.addr.eq(start),
            self.o.payload.beats_less_one.eq(pending + take - 1),
            self.o.payload.last.eq(fits & run.last),
            step.eq(active & known & (~emit | self.o.ready)),
            self.i.ready.eq(~active | (step & fits)),
        ]
        beats = Signal(LENGTH_BITS + 1)
        m.d.comb += beats.eq(pending + take)
        with m.If(step & ~fits):
            after = start + beats
            m.d.sync += [run.words.eq(run.words - take), start.eq(after), pending.eq(0), room.eq(self._room(after))]
        with m.Elif(self.i.ready):
            m.d.sync += active.eq(self.i.valid)
            with m.If(self.i.valid):
                m.d.sync += [run.eq(self.i.payload), run.offset.eq(self.i.payload.offset + self.i.payload.words)]
            self._begin_or_join(m, active & ~emit, start, pending, room, take)
        return m

    def _begin_or_join(
        self, m: Module, join: Signal, start: Signal, pending: Signal, room: Signal, take: Signal
    ) -> None:
        with m.If(join):
            m.d.sync += [pending.eq(pending + take), room.eq(room - take)]
        with m.Else():
            first = (self.base + self.i.payload.offset)[: len(start)]
            m.d.sync += [start.eq(first), pending.eq(0), room.eq(self._room(first))]

    def _room(self, addr: Value) -> Value:
        """Beats that a burst from word `addr` on may have."""
        burst = self._params.axi_burst
        low = exact_log2(burst)
        page = exact_log2(BOUNDARY_BYTES // self._params.word_bytes)
        near_end = addr[low:page].all() if page > low else 1
        return Mux(near_end, burst - addr[:low], burst)
