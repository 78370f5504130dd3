"""The load unit: from memory to the scratchpad or the weight memory; which words go where is `MoveFrontEnd.model`."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from intloom.hw.bus.axi4 import Resp, read_layout
from intloom.hw.bus.skid_buffer import SkidBuffer
from intloom.hw.dma.address_walker import LOCAL_ADDRESS_LAYOUT, word_address
from intloom.hw.dma.bursts import burst_layout
from intloom.hw.dma.front_end import MoveFrontEnd, runs_ahead
from intloom.hw.dma.runs import word_address_bits
from intloom.hw.ports import UnitPort, WeightWritePort, WritePort, out_of_range
from intloom.hw.spec.isa import Kind, Target
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.regs import Cause, Stall


def _word_layout(params: HardwareParams) -> data.StructLayout:
    """A word, and where it goes; the address is as wide as the larger memory's."""
    addr = exact_log2(max(params.scratch_words, params.weight_words))
    return data.StructLayout(
        {"data": params.axi_data_bits, "to_weights": 1, "addr": addr, "out_of_range": 1, "last": 1},
    )


class LoadUnit(wiring.Component):
    """Runs LOAD instructions: a beat a cycle, unless the scratchpad refuses it or the data has not come.

    Bursts of following instructions are asked for while earlier data still arrives. When halted it asks for nothing
    more, but takes and writes what it has asked for.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    base
        First word of the memory.
    bursts
        What to read; data comes back on `r` in the same order.
    """

    DONE_LATENCY = 1
    """Cycles from the last write to `done`."""

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        super().__init__(
            {
                "unit": In(UnitPort()),
                "base": In(word_address_bits(params)),
                "bursts": Out(stream.Signature(burst_layout(params))),
                "r": In(stream.Signature(read_layout(params.axi_data_bits))),
                "scratch": Out(WritePort(params.word_bytes)),
                "weights": Out(WeightWritePort(params.word_bytes)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Pair each beat with its place, then write it."""
        m = Module()
        m.submodules.front = front = MoveFrontEnd(self._params, Kind.LOAD)
        m.submodules.places = places = SkidBuffer(LOCAL_ADDRESS_LAYOUT)
        m.submodules.words = words = SkidBuffer(_word_layout(self._params))
        wiring.connect(m, front.bursts, wiring.flipped(self.bursts))
        wiring.connect(m, front.places, places.i)
        come = Signal()
        self._pair(m, places, words, come)
        self._write(m, words)
        self._account(m, front, words, come)
        self._watch_faults(m, places, words, come)
        m.d.comb += [
            front.base.eq(self.base),
            front.may_issue.eq(1),
            front.halt.eq(self.unit.halt | self.unit.fault),
            front.valid.eq(self.unit.valid),
            front.instruction.eq(self.unit.instruction),
            front.index.eq(self.unit.index),
            self.unit.ready.eq(front.ready),
        ]
        return m

    def _pair(self, m: Module, places: SkidBuffer, words: SkidBuffer, come: Signal) -> None:
        """A buffer for data and address together: the scratchpad's grant reaches neither bus nor walker.

        Nor does a beat, whose owner is known late in its cycle, reach the walker: places stand in a buffer before it.
        """
        place, word = places.o.payload, words.i.payload
        m.d.comb += [
            word.data.eq(self.r.payload.data),
            word.to_weights.eq(place.target == Target.WEIGHT),
            word.addr.eq(place.addr),
            word.out_of_range.eq(out_of_range(place.addr, self._params.scratch_words) & ~word.to_weights),
            word.last.eq(place.last),
            words.i.valid.eq(self.r.valid & places.o.valid),
            come.eq(words.i.valid & words.i.ready),
            self.r.ready.eq(places.o.valid & words.i.ready),
            places.o.ready.eq(self.r.valid & words.i.ready),
        ]

    def _write(self, m: Module, words: SkidBuffer) -> None:
        word = words.o.payload
        m.d.comb += [
            self.scratch.valid.eq(words.o.valid & ~word.to_weights),
            self.scratch.addr.eq(word_address(word.addr, word.out_of_range)),
            self.scratch.data.eq(word.data),
            self.scratch.mask.eq(~0),
            self.weights.valid.eq(words.o.valid & word.to_weights),
            self.weights.addr.eq(word.addr),
            self.weights.data.eq(word.data),
            words.o.ready.eq(word.to_weights | self.scratch.ready),
        ]

    def _account(self, m: Module, front: MoveFrontEnd, words: SkidBuffer, come: Signal) -> None:
        """Count what is under way: instructions for `idle`, bursts for `idle` when halted."""
        moved = words.o.valid & words.o.ready
        finished = moved & words.o.payload.last & ~self.unit.fault
        taken = self.unit.valid & self.unit.ready
        # A move of one run may be at work in each walker and in the buffers, beside those in the queue.
        instructions = Signal(range(runs_ahead(self._params) + 9))
        waiting = Signal()
        # Beside those that the read channel has accepted, one may be on offer.
        bursts = Signal(range(self._params.axi_outstanding + 4))
        with m.If(taken & ~self.unit.done):
            m.d.sync += [instructions.eq(instructions + 1), waiting.eq(1)]
        with m.Elif(self.unit.done & ~taken):
            m.d.sync += [instructions.eq(instructions - 1), waiting.eq(instructions != 1)]
        m.d.sync += [
            bursts.eq(bursts + front.issued - (come & self.r.payload.last)),
            self.unit.done.eq(finished),
        ]
        m.d.comb += [
            self.unit.started.eq(taken),
            self.unit.busy.eq(moved),
            self.unit.stall[Stall.MEMORY].eq(waiting & ~moved),
            self.unit.idle.eq((bursts == 0) & (~waiting | self.unit.halt)),
        ]

    def _watch_faults(self, m: Module, places: SkidBuffer, words: SkidBuffer, come: Signal) -> None:
        cause = Signal.like(self.unit.cause)
        with m.If(self.r.payload.resp == Resp.SLVERR):
            m.d.comb += cause.eq(Cause.READ_SLVERR)
        with m.Elif(self.r.payload.resp == Resp.DECERR):
            m.d.comb += cause.eq(Cause.READ_DECERR)
        with m.Elif(words.i.payload.out_of_range):
            m.d.comb += cause.eq(Cause.SCRATCH_RANGE)
        with m.If(come & (cause != Cause.NONE) & ~self.unit.fault):
            m.d.sync += [
                self.unit.fault.eq(1),
                self.unit.cause.eq(cause),
                self.unit.fault_index.eq(places.o.payload.index),
            ]
