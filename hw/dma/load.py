"""The load unit: from memory to the scratchpad or the weight memory."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.bus.axi4 import Resp, read_layout
from hw.ports import UnitPort, WeightWritePort, WritePort
from hw.spec.isa import Kind, Target
from hw.spec.params import HardwareParams
from hw.spec.regs import Cause, Stall

from .bursts import burst_layout, word_address_bits
from .front import MoveFront, runs_ahead


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
        """Pair each beat with its place."""
        m = Module()
        m.submodules.front = front = MoveFront(self._params, Kind.LOAD)
        wiring.connect(m, front.bursts, wiring.flipped(self.bursts))
        moved = Signal()
        self._write(m, front, moved)
        self._account(m, front, moved)
        self._watch_faults(m, front, moved)
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

    def _write(self, m: Module, front: MoveFront, moved: Signal) -> None:
        place = front.places.payload
        both = self.r.valid & front.places.valid
        to_weights = place.target == Target.WEIGHT
        m.d.comb += [
            self.scratch.valid.eq(both & ~to_weights),
            self.scratch.addr.eq(place.addr),
            self.scratch.data.eq(self.r.payload.data),
            self.scratch.mask.eq(~0),
            self.weights.valid.eq(both & to_weights),
            self.weights.addr.eq(place.addr),
            self.weights.data.eq(self.r.payload.data),
            moved.eq(both & (to_weights | self.scratch.ready)),
            self.r.ready.eq(moved),
            front.places.ready.eq(moved),
        ]

    def _account(self, m: Module, front: MoveFront, moved: Signal) -> None:
        """Count what is under way: instructions for `idle`, bursts for `idle` when halted."""
        finished = moved & front.places.payload.last & ~self.unit.fault
        taken = self.unit.valid & self.unit.ready
        # A move of one run may be at work in each walker, beside those in the queue.
        instructions = Signal(range(runs_ahead(self._params) + 4))
        # Beside those that the read channel has accepted, two may wait in the front's buffer.
        bursts = Signal(range(self._params.axi_outstanding + 4))
        m.d.sync += [
            instructions.eq(instructions + taken - finished),
            bursts.eq(bursts + front.issued - (moved & self.r.payload.last)),
            self.unit.done.eq(finished),
        ]
        waiting = instructions != 0
        m.d.comb += [
            self.unit.started.eq(taken),
            self.unit.busy.eq(moved),
            self.unit.stall[Stall.MEMORY].eq(waiting & ~moved),
            self.unit.idle.eq((bursts == 0) & (~waiting | self.unit.halt) & ~self.unit.done),
        ]

    def _watch_faults(self, m: Module, front: MoveFront, moved: Signal) -> None:
        cause = Signal.like(self.unit.cause)
        with m.If(self.r.payload.resp == Resp.SLVERR):
            m.d.comb += cause.eq(Cause.READ_SLVERR)
        with m.Elif(self.r.payload.resp == Resp.DECERR):
            m.d.comb += cause.eq(Cause.READ_DECERR)
        with m.Elif(self.scratch.valid & self.scratch.fault):
            m.d.comb += cause.eq(Cause.SCRATCH_RANGE)
        with m.If(moved & (cause != Cause.NONE) & ~self.unit.fault):
            m.d.sync += [
                self.unit.fault.eq(1),
                self.unit.cause.eq(cause),
                self.unit.fault_index.eq(front.places.payload.index),
            ]
