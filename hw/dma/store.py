"""The store unit: from the scratchpad to memory; which words go where is `MoveFrontEnd.model`."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from intloom.hw.bus.axi4 import LENGTH_BITS, RESPONSE_LAYOUT, Resp, address_layout, drive_address, write_layout
from intloom.hw.bus.skid_buffer import SkidBuffer
from intloom.hw.credit_fifo import CreditFifo
from intloom.hw.dma.address_walker import word_address
from intloom.hw.dma.front_end import MoveFrontEnd, runs_ahead
from intloom.hw.dma.runs import word_address_bits
from intloom.hw.ports import READ_LATENCY, ReadPort, UnitPort, out_of_range
from intloom.hw.spec.isa import COUNT_BITS, Kind
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.regs import Cause, Stall

AHEAD_WORDS = 16
"""Words read ahead: covers the scratchpad's latency and the queue's own at a word a cycle, and some refusals."""


class StoreUnit(wiring.Component):
    """Runs STORE instructions: a beat a cycle, unless the scratchpad refuses or the bus does not take it.

    An instruction is done when memory has confirmed its last burst. When halted it starts no burst more, but completes
    those that it has offered; after an address fault their remaining bytes are masked out.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    base
        First word of the memory.
    """

    DONE_LATENCY = 1
    """Cycles from the last response to `done`."""

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        super().__init__(
            {
                "unit": In(UnitPort()),
                "base": In(word_address_bits(params)),
                "scratch": Out(ReadPort(params.word_bytes)),
                "aw": Out(stream.Signature(address_layout(params.axi_addr_bits))),
                "w": Out(stream.Signature(write_layout(params.axi_data_bits))),
                "b": In(stream.Signature(RESPONSE_LAYOUT)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Bursts to AW and to the two queues that number beats and await responses; places to reads to W."""
        m = Module()
        m.submodules.front = front = MoveFrontEnd(self._params, Kind.STORE)
        m.d.comb += [
            front.base.eq(self.base),
            front.halt.eq(self.unit.halt | self.unit.fault),
            front.instruction.eq(self.unit.instruction),
            front.index.eq(self.unit.index),
        ]
        self._send_data(m, self._send_addresses(m, front), self._read(m, front))
        self._receive_responses(m, front)
        return m

    def _send_addresses(self, m: Module, front: MoveFrontEnd) -> CreditFifo:
        """AW from the bursts, and the queue of their lengths."""
        m.submodules.lengths = lengths = CreditFifo(LENGTH_BITS, self._params.axi_outstanding)
        offered = front.bursts
        sent = self.aw.valid & self.aw.ready
        m.d.comb += [
            *drive_address(
                self.aw.payload, offered.payload.addr, offered.payload.beats_less_one, self._params.word_bytes
            ),
            # The length must have its place in the queue before memory sees the address.
            self.aw.valid.eq(offered.valid & lengths.credit_available),
            offered.ready.eq(sent),
            lengths.word.eq(offered.payload.beats_less_one),
            lengths.push.eq(sent),
            lengths.take_credit.eq(sent),
        ]
        return lengths

    def _read(self, m: Module, front: MoveFrontEnd) -> CreditFifo:
        """Read words ahead, as many as the returned queue can hold; a word past a fault carries its mark."""
        m.submodules.words = words = CreditFifo(self._params.axi_data_bits + 1, AHEAD_WORDS)
        requests = self._buffer_requests(m, front)
        asked = Signal()
        arriving = Signal(READ_LATENCY)
        poisoned = Signal()
        m.d.comb += [
            self.scratch.valid.eq(requests.o.valid & words.credit_available),
            self.scratch.addr.eq(word_address(requests.o.payload.addr, requests.o.payload.out_of_range)),
            asked.eq(self.scratch.valid & self.scratch.ready),
            requests.o.ready.eq(words.credit_available & self.scratch.ready),
            words.take_credit.eq(asked),
            words.word.eq(Cat(self.scratch.data, poisoned)),
            words.push.eq(arriving[-1]),
        ]
        m.d.sync += arriving.eq(arriving << 1 | asked)
        with m.If(asked & requests.o.payload.out_of_range):
            m.d.sync += poisoned.eq(1)
        return words

    def _buffer_requests(self, m: Module, front: MoveFrontEnd) -> SkidBuffer:
        """Judge each address on its way into a buffer, so that the scratchpad's grant reaches no walker."""
        m.submodules.requests = requests = SkidBuffer(
            data.StructLayout({"addr": exact_log2(self._params.scratch_words), "out_of_range": 1})
        )
        place = front.places.payload
        m.d.comb += [
            requests.i.valid.eq(front.places.valid),
            front.places.ready.eq(requests.i.ready),
            requests.i.payload.addr.eq(place.addr),
            requests.i.payload.out_of_range.eq(out_of_range(place.addr, self._params.scratch_words)),
        ]
        with m.If(requests.i.valid & requests.i.ready & requests.i.payload.out_of_range):
            self._raise(m, Cause.SCRATCH_RANGE, place.index)
        return requests

    def _send_data(self, m: Module, lengths: CreditFifo, words: CreditFifo) -> None:
        active = Signal()
        beats_left = Signal(LENGTH_BITS)
        sent = self.w.valid & self.w.ready
        m.d.comb += [
            self.w.valid.eq(active & words.o.valid),
            self.w.payload.data.eq(words.o.payload),
            self.w.payload.strb.eq((~words.o.payload[-1]).replicate(self._params.word_bytes)),
            self.w.payload.last.eq(beats_left == 0),
            words.o.ready.eq(active & self.w.ready),
            lengths.o.ready.eq(~active | (sent & self.w.payload.last)),
            self.unit.busy.eq(sent),
        ]
        with m.If(lengths.o.ready):
            m.d.sync += [active.eq(lengths.o.valid), beats_left.eq(lengths.o.payload)]
        with m.Elif(sent):
            m.d.sync += beats_left.eq(beats_left - 1)

    def _receive_responses(self, m: Module, front: MoveFrontEnd) -> None:
        """Bursts await their responses in one queue, instructions in another; both bound what is under way."""
        depth = 2 * runs_ahead(self._params)
        m.submodules.awaited = awaited = CreditFifo(1, self._params.axi_outstanding)
        m.submodules.indices = indices = CreditFifo(COUNT_BITS, depth)
        taken = self.unit.valid & self.unit.ready
        answered = self.b.valid & self.b.ready
        finished = answered & awaited.o.payload
        error = answered & self.b.payload.resp[1]
        m.d.comb += [
            front.may_issue.eq(awaited.credit_available),
            awaited.word.eq(front.issued_last),
            awaited.push.eq(front.issued),
            awaited.take_credit.eq(front.issued),
            self.b.ready.eq(awaited.o.valid & indices.o.valid),
            awaited.o.ready.eq(answered),
            indices.word.eq(self.unit.index),
            indices.push.eq(taken),
            indices.take_credit.eq(taken),
            indices.o.ready.eq(finished),
            front.valid.eq(self.unit.valid & indices.credit_available),
            self.unit.ready.eq(front.ready & indices.credit_available),
        ]
        self._report(m, taken, indices.o.valid, awaited.o.valid)
        m.d.sync += self.unit.done.eq(finished & ~error & ~self.unit.fault)
        with m.If(error):
            cause = Signal.like(self.unit.cause)
            m.d.comb += cause.eq(Cause.WRITE_SLVERR)
            with m.If(self.b.payload.resp == Resp.DECERR):
                m.d.comb += cause.eq(Cause.WRITE_DECERR)
            self._raise(m, cause, indices.o.payload)

    def _report(self, m: Module, taken: Value, instructions: Value, bursts: Value) -> None:
        m.d.comb += [
            self.unit.started.eq(taken),
            self.unit.stall[Stall.MEMORY].eq(instructions & ~self.unit.busy),
            self.unit.idle.eq(~bursts & (~instructions | self.unit.halt) & ~self.unit.done),
        ]

    def _raise(self, m: Module, cause: Value | Cause, index: Value) -> None:
        with m.If(~self.unit.fault):
            m.d.sync += [self.unit.fault.eq(1), self.unit.cause.eq(cause), self.unit.fault_index.eq(index)]
