"""The store unit: from the scratchpad to memory. `MoveFrontEnd.model` defines which words."""

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from intloom.hw.bus.axi4 import LENGTH_BITS, RESPONSE_LAYOUT, Resp, address_layout, drive_address, write_layout
from intloom.hw.bus.skid_buffer import SkidBuffer
from intloom.hw.credit_fifo import CreditFifo
from intloom.hw.dma.address_walker import word_address
from intloom.hw.dma.front_end import MoveFrontEnd
from intloom.hw.ports import READ_LATENCY, ReadPort, UnitPort, WindowPort, out_of_range
from intloom.hw.spec.isa import COUNT_BITS, Kind
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.regs import Cause, Stall

READ_AHEAD_WORDS = 16
"""Depth of the read-ahead FIFO: covers scratchpad and FIFO latency at one word per cycle, and some lost grants."""


class StoreUnit(wiring.Component):
    """Executes STORE instructions.

    Words are read ahead from the scratchpad into a FIFO with credits. An instruction is done when memory has
    acknowledged its last burst on B.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    unit
        Instructions and status.
    window
        The memory that may be addressed.
    scratch
        Read port of the scratchpad.
    aw, w, b
        The AXI write channels.

    Handshake
    ---------
    The channels are streams; `unit` and `scratch` follow their signatures. W of a burst
    starts at the earliest 2 cycles after its AW transfer; addresses of later bursts do not wait for it.

    Timing
    ------
    One beat per cycle, unless the scratchpad grants another port or the bus stalls. From the last response of an
    instruction to `unit.done`: `DONE_LATENCY` = 1 cycle.

    Requirements
    ------------
    Responses return in the order of the addresses.

    Reset and faults
    ----------------
    During `unit.halt` no burst is issued; bursts that were issued are completed. Reset requires `unit.idle`. An error
    response raises WRITE_SLVERR or WRITE_DECERR, a burst outside the window OUTSIDE_WINDOW, a scratchpad address past
    the end SCRATCH_RANGE; from then on all words that leave the scratchpad are sent with strobes 0.
    """

    DONE_LATENCY = 1
    """Cycles from the last response of an instruction to `done`."""

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        super().__init__(
            {
                "unit": In(UnitPort()),
                "window": In(WindowPort(params)),
                "scratch": Out(ReadPort(params.word_bytes)),
                "aw": Out(stream.Signature(address_layout(params.axi_addr_bits))),
                "w": Out(stream.Signature(write_layout(params.word_bits))),
                "b": In(stream.Signature(RESPONSE_LAYOUT)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Bursts go to AW and to FIFOs of lengths and of awaited responses; addresses go to reads, data to W."""
        m = Module()
        m.submodules.front = front = MoveFrontEnd(self._params, Kind.STORE)
        wiring.connect(m, wiring.flipped(self.window), front.window)
        m.d.comb += [
            front.halt.eq(self.unit.halt | self.unit.fault),
            front.instruction.eq(self.unit.instruction),
            front.index.eq(self.unit.index),
        ]
        # First, so that another fault of the same cycle, of an earlier instruction, wins.
        with m.If(front.outside):
            self._raise(m, Cause.OUTSIDE_WINDOW, front.outside_index)
        self._send_data(m, self._send_addresses(m, front), self._read(m, front))
        self._receive_responses(m, front)
        return m

    def _send_addresses(self, m: Module, front: MoveFrontEnd) -> CreditFifo:
        """Drive AW from the bursts; returns the FIFO of their lengths."""
        m.submodules.lengths = lengths = CreditFifo(LENGTH_BITS, self._params.axi_outstanding)
        offered, burst = front.bursts, front.bursts.payload
        fire = self.aw.valid & self.aw.ready
        m.d.comb += [
            *drive_address(self.aw.payload, burst.addr, burst.beats_less_one, self._params.word_bytes, self._params),
            # W needs the length: no address is sent without a credit for it.
            self.aw.valid.eq(offered.valid & lengths.credit_available),
            offered.ready.eq(fire),
            # W follows the order of AW, because AXI4 has no WID (A5.4): a FIFO of lengths is enough to mark last beats.
            lengths.word.eq(burst.beats_less_one),
            lengths.push.eq(fire),
            lengths.take_credit.eq(fire),
        ]
        return lengths

    def _read(self, m: Module, front: MoveFrontEnd) -> CreditFifo:
        """Read ahead while credits last; returns the FIFO of words, each with a bit that masks it out after a fault."""
        m.submodules.words = words = CreditFifo(self._params.word_bits + 1, READ_AHEAD_WORDS)
        requests = self._buffer_requests(m, front)
        read_fire = Signal()
        reads = Signal(READ_LATENCY)
        masked = Signal()
        m.d.comb += [
            self.scratch.valid.eq(requests.o.valid & words.credit_available),
            self.scratch.addr.eq(word_address(requests.o.payload.addr, requests.o.payload.out_of_range)),
            read_fire.eq(self.scratch.valid & self.scratch.ready),
            requests.o.ready.eq(words.credit_available & self.scratch.ready),
            words.take_credit.eq(read_fire),
            words.word.eq(Cat(self.scratch.data, masked)),
            words.push.eq(reads[-1]),
        ]
        # A read has no tag: its word arrives READ_LATENCY cycles after the grant.
        m.d.sync += reads.eq(reads << 1 | read_fire)
        # AXI4 forbids to end a burst early (A3.4.1). Beats after a fault are sent with all strobes low (A3.4.3), so
        # that memory keeps its contents.
        with m.If(read_fire & requests.o.payload.out_of_range):
            m.d.sync += masked.eq(1)
        return words

    def _buffer_requests(self, m: Module, front: MoveFrontEnd) -> SkidBuffer:
        """Check the range of each address before a skid buffer, which cuts the path from grant to address walker."""
        m.submodules.requests = requests = SkidBuffer(
            data.StructLayout({"addr": exact_log2(self._params.scratch_words), "out_of_range": 1})
        )
        address = front.addresses.payload
        m.d.comb += [
            requests.i.valid.eq(front.addresses.valid),
            front.addresses.ready.eq(requests.i.ready),
            requests.i.payload.addr.eq(address.addr),
            requests.i.payload.out_of_range.eq(out_of_range(address.addr, self._params.scratch_words)),
        ]
        with m.If(requests.i.valid & requests.i.ready & requests.i.payload.out_of_range):
            self._raise(m, Cause.SCRATCH_RANGE, address.index)
        return requests

    def _send_data(self, m: Module, lengths: CreditFifo, words: CreditFifo) -> None:
        active = Signal()
        beats_left = Signal(LENGTH_BITS)
        fire = self.w.valid & self.w.ready
        m.d.comb += [
            self.w.valid.eq(active & words.o.valid),
            self.w.payload.data.eq(words.o.payload),
            self.w.payload.strb.eq((~words.o.payload[-1]).replicate(self._params.word_bytes)),
            self.w.payload.last.eq(beats_left == 0),
            words.o.ready.eq(active & self.w.ready),
            lengths.o.ready.eq(~active | (fire & self.w.payload.last)),
            self.unit.busy.eq(fire),
        ]
        with m.If(lengths.o.ready):
            m.d.sync += [active.eq(lengths.o.valid), beats_left.eq(lengths.o.payload)]
        with m.Elif(fire):
            m.d.sync += beats_left.eq(beats_left - 1)

    def _receive_responses(self, m: Module, front: MoveFrontEnd) -> None:
        """Match responses with outstanding bursts and with instructions; both FIFOs bound what is in flight."""
        depth = 2 * self._params.runs_in_flight
        m.submodules.awaited = awaited = CreditFifo(1, self._params.axi_outstanding)
        m.submodules.indices = indices = CreditFifo(COUNT_BITS, depth)
        issued = self.unit.valid & self.unit.ready
        response_fire = self.b.valid & self.b.ready
        finished = response_fire & awaited.o.payload
        # SLVERR and DECERR have bit 1 set (AXI4 A3.4.4).
        error = response_fire & self.b.payload.resp[1]
        m.d.comb += [
            front.issue_enable.eq(awaited.credit_available),
            awaited.word.eq(front.issued_last),
            awaited.push.eq(front.issued),
            awaited.take_credit.eq(front.issued),
            self.b.ready.eq(awaited.o.valid & indices.o.valid),
            awaited.o.ready.eq(response_fire),
            indices.word.eq(self.unit.index),
            indices.push.eq(issued),
            indices.take_credit.eq(issued),
            indices.o.ready.eq(finished),
            front.valid.eq(self.unit.valid & indices.credit_available),
            self.unit.ready.eq(front.ready & indices.credit_available),
        ]
        self._report(m, issued, indices.o.valid, awaited.o.valid)
        m.d.sync += self.unit.done.eq(finished & ~error & ~self.unit.fault)
        with m.If(error):
            cause = Signal.like(self.unit.cause)
            m.d.comb += cause.eq(Cause.WRITE_SLVERR)
            with m.If(self.b.payload.resp == Resp.DECERR):
                m.d.comb += cause.eq(Cause.WRITE_DECERR)
            self._raise(m, cause, indices.o.payload)

    def _report(self, m: Module, issued: Value, instructions: Value, bursts: Value) -> None:
        m.d.comb += [
            self.unit.started.eq(issued),
            self.unit.stall[Stall.MEMORY].eq(instructions & ~self.unit.busy),
            # `done` follows the last response by a cycle: without it, `idle` would precede `done`.
            self.unit.idle.eq(~bursts & (~instructions | self.unit.halt) & ~self.unit.done),
        ]

    def _raise(self, m: Module, cause: Value | Cause, index: Value) -> None:
        with m.If(~self.unit.fault):
            m.d.sync += [self.unit.fault.eq(1), self.unit.cause.eq(cause), self.unit.fault_index.eq(index)]
