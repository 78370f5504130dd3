"""Instruction fetch: the program's words in long bursts, well ahead of their use."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hw.bus.axi4 import read_layout
from hw.bus.buffer import StreamBuffer
from hw.dma.bursts import BurstSplitter, burst_layout, word_address_bits
from hw.spec.isa import DRAM_BITS, INSTRUCTION_BITS, INSTRUCTION_BYTES
from hw.spec.params import HardwareParams

LENGTH_REGISTER_BITS = 32
AHEAD_INSTRUCTIONS = 16
"""Instructions that the queue holds at least: with the units' own queues they cover latencies of hundreds of cycles."""


def beats_per_instruction(params: HardwareParams) -> int:
    """Bus words that make an instruction."""
    return INSTRUCTION_BYTES // params.word_bytes


class Fetch(wiring.Component):
    """Reads a program from `start` on and hands out its instructions in order.

    It asks only for what its queue has room for, so its data never stands in the way of other data on the bus.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    base
        First word of the memory.
    start
        Begin; the program's first word (from the base) and its length in instructions are read in this cycle.
    halt
        Ask for nothing more, and drop what comes.
    instruction
        Instructions; `instruction_error` says that memory answered with an error.
    exhausted
        The whole program has been handed out.
    idle
        No burst is under way.
    """

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        super().__init__(
            {
                "base": In(word_address_bits(params)),
                "start": In(1),
                "program": In(DRAM_BITS),
                "length": In(LENGTH_REGISTER_BITS),
                "halt": In(1),
                "bursts": Out(stream.Signature(burst_layout(params))),
                "r": In(stream.Signature(read_layout(params.axi_data_bits))),
                "instruction": Out(stream.Signature(INSTRUCTION_BITS)),
                "instruction_error": Out(1),
                "exhausted": Out(1),
                "idle": Out(1),
            }
        )

    @property
    def ahead_words(self) -> int:
        """Words that the queue holds: two bursts, so that one is under way while another is used up."""
        return max(2 * self._params.axi_burst, AHEAD_INSTRUCTIONS * beats_per_instruction(self._params))

    def elaborate(self, platform: object) -> Module:
        """Bursts as room allows, words into the queue, words into instructions."""
        m = Module()
        m.submodules.words = words = SyncFIFOBuffered(width=self._params.axi_data_bits + 1, depth=self.ahead_words)
        m.d.comb += [
            words.w_data.eq(Cat(self.r.payload.data, self.r.payload.resp[1])),
            words.w_en.eq(self.r.valid),
            # There is always room for what was asked for.
            self.r.ready.eq(1),
        ]
        self._ask(m, words)
        self._assemble(m, words)
        return m

    def _ask(self, m: Module, words: SyncFIFOBuffered) -> None:
        length_bits = LENGTH_REGISTER_BITS + exact_log2(beats_per_instruction(self._params))
        m.submodules.splitter = splitter = BurstSplitter(self._params, length_bits)
        m.submodules.buffer = buffer = StreamBuffer(burst_layout(self._params))
        wiring.connect(m, buffer.o, wiring.flipped(self.bursts))
        room = Signal(range(self.ahead_words + 1), init=self.ahead_words)
        beats = splitter.o.payload.beats_less_one + 1
        may = Signal()
        issued = Signal()
        under_way = Signal(range(self._params.axi_outstanding + 4))
        m.d.comb += [
            splitter.base.eq(self.base),
            splitter.i.valid.eq(self.start & (self.length != 0)),
            splitter.i.payload.offset.eq(self.program),
            splitter.i.payload.words.eq(self.length << exact_log2(beats_per_instruction(self._params))),
            splitter.i.payload.last.eq(1),
            may.eq((room >= beats) & ~self.halt),
            buffer.i.payload.eq(splitter.o.payload),
            buffer.i.valid.eq(splitter.o.valid & may),
            splitter.o.ready.eq(buffer.i.ready & may),
            issued.eq(splitter.o.valid & splitter.o.ready),
            self.idle.eq(under_way == 0),
        ]
        m.d.sync += [
            room.eq(room - Mux(issued, beats, 0) + (words.r_en & words.r_rdy)),
            under_way.eq(under_way + issued - (self.r.valid & self.r.payload.last)),
        ]

    def _assemble(self, m: Module, words: SyncFIFOBuffered) -> None:
        """Shift words together; the first word ends up lowest."""
        beats = beats_per_instruction(self._params)
        shift = Signal(INSTRUCTION_BITS)
        error = Signal()
        have = Signal(range(beats + 1))
        left = Signal(LENGTH_REGISTER_BITS)
        taken = self.instruction.valid & self.instruction.ready
        m.d.comb += [
            self.instruction.payload.eq(shift),
            self.instruction.valid.eq(have == beats),
            self.instruction_error.eq(error),
            words.r_en.eq(have != beats),
            self.exhausted.eq(left == 0),
        ]
        with m.If(self.start):
            m.d.sync += left.eq(self.length)
        with m.If(words.r_en & words.r_rdy):
            m.d.sync += [
                shift.eq(Cat(shift[self._params.axi_data_bits :], words.r_data[:-1])),
                error.eq(error | words.r_data[-1]),
                have.eq(have + 1),
            ]
        with m.Elif(taken):
            m.d.sync += [have.eq(0), error.eq(0), left.eq(left - 1)]
