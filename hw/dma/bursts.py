"""Cuts runs into AXI bursts, and joins runs that touch."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hw.bus.axi4 import LENGTH_BITS
from hw.spec.params import HardwareParams

from .runs import MEMORY_RUN_LAYOUT, RUN_BITS


def word_address_bits(params: HardwareParams) -> int:
    """Width of a memory address that counts words."""
    return params.axi_addr_bits - exact_log2(params.word_bytes)


def burst_layout(params: HardwareParams) -> data.StructLayout:
    """A burst of `beats_less_one + 1` beats from word `addr` on; `last` marks the final one of its instruction."""
    return data.StructLayout({"addr": word_address_bits(params), "beats_less_one": LENGTH_BITS, "last": 1})


class BurstSplitter(wiring.Component):
    """Turns runs into bursts of at most `axi_burst` beats that never cross 4 KiB, at most one burst a cycle.

    Memory falls into blocks of `axi_burst` words, each at a multiple of its size; a burst stays inside one. A run that
    starts where the one before ended goes on in the same burst, so rows as wide as their tensor travel in long bursts.
    Each run takes one cycle, or one for each burst that ends in it.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    base
        First word of the memory, added to every offset.
    i
        Runs.
    held_back
        No run will come before what was asked for has been moved: do not wait to see whether the next one joins.
    o
        Bursts, `LATENCY` cycles after their last run at the earliest.
    """

    LATENCY = 1

    def __init__(self, params: HardwareParams) -> None:
        self._block_bits = exact_log2(params.axi_burst)
        super().__init__(
            {
                "base": In(word_address_bits(params)),
                "i": In(stream.Signature(MEMORY_RUN_LAYOUT)),
                "held_back": In(1),
                "o": Out(stream.Signature(burst_layout(params))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Register the run at work, see what of it fits the block, then go on, join or start anew."""
        m = Module()
        # Here `run.offset` is the word after the run's end: where a run that joins must start.
        run, active = Signal(MEMORY_RUN_LAYOUT), Signal()
        start = Signal.like(self.base)
        at, end = Signal(self._block_bits), Signal(RUN_BITS + 1)
        low, blocks = end[: self._block_bits], end[self._block_bits :]
        fits, full, emit, insists = Signal(), Signal(), Signal(), Signal()
        joins, known, step = Signal(), Signal(), Signal()
        m.d.comb += [
            # In words from the block's start on.
            end.eq(run.words + at),
            full.eq(blocks.any()),
            fits.eq(~full | ((blocks == 1) & ~low.any())),
            joins.eq(self.i.valid & ~insists & (self.i.payload.offset == run.offset)),
            known.eq(~fits | run.last | self.i.valid | self.held_back | insists),
            emit.eq(active & known & (full | run.last | ~joins)),
            step.eq(active & known & (~emit | self.o.ready)),
            self.i.ready.eq(~active | (step & fits)),
        ]
        # A burst once offered is not taken back for a run that comes after all and would join.
        m.d.sync += insists.eq(emit & ~self.o.ready)
        self._offer(m, emit, start, Mux(full, 0, low), fits & run.last)
        with m.If(step & ~fits):
            next_block = start[self._block_bits :] + 1
            m.d.sync += [run.words.eq(Cat(low, blocks - 1)), at.eq(0), start.eq(next_block << self._block_bits)]
        with m.Elif(self.i.ready):
            m.d.sync += active.eq(self.i.valid)
            with m.If(self.i.valid):
                m.d.sync += [run.eq(self.i.payload), run.offset.eq(self.i.payload.offset + self.i.payload.words)]
            with m.If(active & ~emit):
                m.d.sync += at.eq(low)
            with m.Else():
                first = (self.base + self.i.payload.offset)[: len(start)]
                m.d.sync += [start.eq(first), at.eq(first)]
        return m

    def _offer(self, m: Module, emit: Signal, start: Signal, end: Value, last: Value) -> None:
        """The burst from `start` to the place `end` in its block; 0 is the block's end."""
        beats_less_one = Signal(self._block_bits)
        m.d.comb += [
            beats_less_one.eq(end + ~start[: self._block_bits]),
            self.o.valid.eq(emit),
            self.o.payload.addr.eq(start),
            self.o.payload.beats_less_one.eq(beats_less_one),
            self.o.payload.last.eq(last),
        ]
