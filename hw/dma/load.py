"""The load unit: from memory to the scratchpad or the weight memory. `MoveFrontEnd.model` defines which words."""

from amaranth.hdl import Const, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from intloom.hw.bus.axi4 import Resp, read_layout
from intloom.hw.bus.skid_buffer import SkidBuffer
from intloom.hw.decode import instruction_layout
from intloom.hw.dma.address_walker import local_address_layout, word_address
from intloom.hw.dma.bursts import burst_layout
from intloom.hw.dma.constant_check import ConstantCheck
from intloom.hw.dma.front_end import MoveFrontEnd
from intloom.hw.dma.word_decoder import WordDecoder
from intloom.hw.ports import UnitPort, WeightWritePort, WindowPort, WritePort, out_of_range
from intloom.hw.spec.isa import Kind, LoadTarget
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.regs import Cause, Stall


def _word_layout(params: HardwareParams) -> data.StructLayout:
    """A word with its target; the address is as wide as that of the larger memory."""
    addr = exact_log2(max(params.scratch_words, params.weight_words))
    return data.StructLayout(
        {"data": params.word_bits, "to_weights": 1, "addr": addr, "out_of_range": 1, "last": 1},
    )


class LoadUnit(wiring.Component):
    """Executes LOAD instructions.

    Bursts of following instructions are requested while data of earlier ones arrives. Each beat, or with `coded` each
    word that the decoder makes of the beats, is paired with its local address and written.

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
    bursts
        Read requests.
    r
        Read data, in the order of the requests.
    scratch, weights
        Write ports of the two memories.

    Handshake
    ---------
    `bursts` and `r` are streams; `unit`, `scratch` and `weights` follow their signatures. Skid buffers separate `r`,
    the address walker and the scratchpad's ready from each other.

    Timing
    ------
    One word per cycle, unless read data is late or the scratchpad grants another port. From a beat on `r` to its write
    request: 1 cycle. From the last write of an instruction to `unit.done`: `DONE_LATENCY` = 1 cycle.

    Requirements
    ------------
    Read data returns in request order.

    Reset and faults
    ----------------
    During `unit.halt` no burst is issued; outstanding data is accepted and written. Reset requires `unit.idle`. An
    error response raises READ_SLVERR or READ_DECERR, a scratchpad address past the end SCRATCH_RANGE, a burst outside
    the window OUTSIDE_WINDOW, beats that are no code of a run's words BAD_FIELD, and beats that do not match the
    instruction's CRC CONSTANT_CHECK, 2 cycles after the last one. After a fault no burst is issued and `done` stays
    low.
    """

    DONE_LATENCY = 1
    """Cycles from the last write of an instruction to `done`."""

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        super().__init__(
            {
                "unit": In(UnitPort()),
                "window": In(WindowPort(params)),
                "bursts": Out(stream.Signature(burst_layout(params))),
                "r": In(stream.Signature(read_layout(params.word_bits))),
                "scratch": Out(WritePort(params.word_bytes)),
                "weights": Out(WeightWritePort(params.word_bytes)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Pair each beat with its address, then write it."""
        m = Module()
        m.submodules.front = front = MoveFrontEnd(self._params, Kind.LOAD)
        m.submodules.addresses = addresses = SkidBuffer(local_address_layout(self._params))
        m.submodules.words = words = SkidBuffer(_word_layout(self._params))
        wiring.connect(m, wiring.flipped(self.window), front.window)
        wiring.connect(m, front.bursts, wiring.flipped(self.bursts))
        wiring.connect(m, front.addresses, addresses.i)
        broken = self._pair(m, addresses, words)
        check = self._check(m, addresses, words) if self._params.constant_check else None
        self._write(m, words)
        self._account(m, front, words, check.busy if check else Const(0))
        self._watch_faults(m, front, addresses, words, broken, check)
        blocked = ~check.space if check else Const(0)
        m.d.comb += [
            # Not limited here: `ReadArbiter` accepts at most `axi_outstanding` bursts.
            front.issue_enable.eq(1),
            front.halt.eq(self.unit.halt | self.unit.fault),
            front.valid.eq(self.unit.valid & ~blocked),
            front.instruction.eq(self.unit.instruction),
            front.index.eq(self.unit.index),
            self.unit.ready.eq(front.ready & ~blocked),
        ]
        return m

    def _pair(self, m: Module, addresses: SkidBuffer, words: SkidBuffer) -> Value:
        """Pair a word with its address in one skid buffer; returns whether the beats are no code.

        The buffer cuts the path from the scratchpad's grant to the bus and the address walker. The skid buffer of the
        addresses cuts the path from `r.valid`, which is late behind the arbiter, to the address walker.
        """
        address, word = addresses.o.payload, words.i.payload
        source = stream.Signature(self._params.word_bits).create(path=("source",))
        m.d.comb += [
            word.data.eq(source.payload),
            word.to_weights.eq(address.target == LoadTarget.WEIGHT),
            word.addr.eq(address.addr),
            # Checked before the buffer: one bit is stored instead of the upper address bits.
            word.out_of_range.eq(out_of_range(address.addr, self._params.scratch_words) & ~word.to_weights),
            word.last.eq(address.last),
            words.i.valid.eq(source.valid & addresses.o.valid),
            source.ready.eq(addresses.o.valid & words.i.ready),
            addresses.o.ready.eq(source.valid & words.i.ready),
        ]
        beats = [source.payload.eq(self.r.payload.data), source.valid.eq(self.r.valid), self.r.ready.eq(source.ready)]
        if not self._params.word_code:
            m.d.comb += beats
            return Const(0)
        m.submodules.decoder = decoder = WordDecoder(self._params)
        coded = addresses.o.valid & address.coded
        m.d.comb += [
            decoder.active.eq(coded),
            decoder.beats.eq(address.beats),
            decoder.last.eq(address.end),
            decoder.i.payload.eq(self.r.payload.data),
            decoder.i.valid.eq(self.r.valid & coded),
            decoder.o.ready.eq(words.i.ready),
        ]
        with m.If(coded):
            m.d.comb += [source.payload.eq(decoder.o.payload), source.valid.eq(decoder.o.valid)]
            m.d.comb += self.r.ready.eq(decoder.i.ready)
        with m.Else():
            m.d.comb += beats
        return decoder.broken

    def _check(self, m: Module, addresses: SkidBuffer, words: SkidBuffer) -> ConstantCheck:
        """Check the beats against the CRC of their instruction."""
        m.submodules.check = check = ConstantCheck(self._params)
        instruction = data.View(instruction_layout(Kind.LOAD), self.unit.instruction)
        m.d.comb += [
            check.crc.eq(instruction.crc),
            check.issue.eq(self.unit.valid & self.unit.ready & instruction.crc.any()),
            check.beat.eq(self.r.valid & self.r.ready),
            check.word.eq(self.r.payload.data),
            check.last.eq(words.i.valid & words.i.ready & addresses.o.payload.last),
            check.checked.eq(addresses.o.payload.checked),
            check.index.eq(addresses.o.payload.index),
        ]
        return check

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

    def _account(self, m: Module, front: MoveFrontEnd, words: SkidBuffer, checking: Value) -> None:
        """Count instructions in flight and outstanding bursts, for `idle`."""
        write_fire = words.o.valid & words.o.ready
        finished = write_fire & words.o.payload.last & ~self.unit.fault
        issued = self.unit.valid & self.unit.ready
        # Instructions of one run each: as many as the FIFO of runs holds, plus those in walkers and skid buffers.
        instructions = Signal(range(self._params.runs_in_flight + 9))
        in_flight = Signal()
        # `axi_outstanding` accepted by the arbiter, plus those in its skid buffer and the one offered here.
        bursts = Signal(range(self._params.axi_outstanding + 4))
        with m.If(issued & ~self.unit.done):
            m.d.sync += [instructions.eq(instructions + 1), in_flight.eq(1)]
        with m.Elif(self.unit.done & ~issued):
            m.d.sync += [instructions.eq(instructions - 1), in_flight.eq(instructions != 1)]
        m.d.sync += [
            bursts.eq(bursts + front.issued - (self.r.valid & self.r.ready & self.r.payload.last)),
            self.unit.done.eq(finished),
        ]
        m.d.comb += [
            self.unit.started.eq(issued),
            self.unit.busy.eq(write_fire),
            self.unit.stall[Stall.MEMORY].eq(in_flight & ~write_fire),
            # In a halt, instructions stay in flight whose bursts never issue. Only the bus must be idle then.
            self.unit.idle.eq((bursts == 0) & (~(in_flight | checking) | self.unit.halt)),
        ]

    def _watch_faults(
        self,
        m: Module,
        front: MoveFrontEnd,
        addresses: SkidBuffer,
        words: SkidBuffer,
        broken: Value,
        check: ConstantCheck | None,
    ) -> None:
        cause = Signal.like(self.unit.cause)
        # EXOKAY cannot occur: no access is exclusive.
        beat_fire, response = self.r.valid & self.r.ready, self.r.payload.resp
        with m.If(beat_fire & (response == Resp.SLVERR)):
            m.d.comb += cause.eq(Cause.READ_SLVERR)
        with m.Elif(beat_fire & (response == Resp.DECERR)):
            m.d.comb += cause.eq(Cause.READ_DECERR)
        with m.Elif(words.i.valid & words.i.ready & words.i.payload.out_of_range):
            m.d.comb += cause.eq(Cause.SCRATCH_RANGE)
        with m.Elif(broken):
            m.d.comb += cause.eq(Cause.BAD_FIELD)
        faults = [(cause != Cause.NONE, cause, addresses.o.payload.index)]
        if check is not None:
            # Its beats came before those that are now paired.
            faults.insert(0, (check.mismatch, Const(Cause.CONSTANT_CHECK), check.mismatch_index))
        faults.append((front.outside, Const(Cause.OUTSIDE_WINDOW), front.outside_index))
        with m.If(~self.unit.fault):
            # The last assignment wins: the earliest instruction comes last.
            for occurs, its_cause, index in reversed(faults):
                with m.If(occurs):
                    m.d.sync += [self.unit.fault.eq(1), self.unit.cause.eq(its_cause), self.unit.fault_index.eq(index)]
