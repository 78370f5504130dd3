"""Instruction fetch: the program's words in long bursts, well ahead of their use."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2, exact_log2

from hw.bus.axi4 import read_layout
from hw.dma.bursts import burst_layout
from hw.dma.runs import word_address_bits
from hw.memory.bank import NO_COLLISIONS
from hw.spec.isa import COUNT_BITS, DRAM_BITS, INSTRUCTION_BYTES
from hw.spec.params import HardwareParams

LENGTH_REGISTER_BITS = 32
AHEAD_INSTRUCTIONS = 16
"""Instructions that the queue holds at least: with the units' own queues they cover latencies of hundreds of cycles."""


def beats_per_instruction(params: HardwareParams) -> int:
    """Bus words that make an instruction."""
    return INSTRUCTION_BYTES // params.word_bytes


def program_word_layout(params: HardwareParams) -> data.StructLayout:
    """A word of the program, and whether memory answered it with an error."""
    return data.StructLayout({"data": params.axi_data_bits, "error": 1})


class Fetch(wiring.Component):
    """Reads a program and hands out its words in order.

    Memory is asked by blocks of `axi_burst` words, each at a multiple of its size, so that none crosses 4 KiB. A block
    has its place in the queue before it is asked for: its data never stands in the way of other data on the bus.
    Programs longer than instructions can be numbered end at the last number.

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
    words
        The program.
    exhausted
        The whole program has been handed out.
    idle
        No burst is under way.
    """

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        self._block_bits = exact_log2(params.axi_burst)
        super().__init__(
            {
                "base": In(word_address_bits(params)),
                "start": In(1),
                "program": In(DRAM_BITS),
                "length": In(LENGTH_REGISTER_BITS),
                "halt": In(1),
                "bursts": Out(stream.Signature(burst_layout(params))),
                "r": In(stream.Signature(read_layout(params.axi_data_bits))),
                "words": Out(stream.Signature(program_word_layout(params))),
                "exhausted": Out(1),
                "idle": Out(1),
            }
        )

    @property
    def ahead_words(self) -> int:
        """Words that the queue holds: two blocks, so that one is under way while another is used up."""
        return max(2 * self._params.axi_burst, AHEAD_INSTRUCTIONS * beats_per_instruction(self._params))

    def elaborate(self, platform: object) -> Module:
        """Bursts as room allows, words into the queue and out of it."""
        m = Module()
        # The queue's places are the low bits of the words' addresses, and one bit that tells full from empty.
        first = Signal(word_address_bits(self._params))
        m.d.comb += first.eq(self.base + self.program)
        stored, block_freed = self._store(m, first)
        asked_all = self._ask(m, first, block_freed)
        m.d.comb += self.exhausted.eq(asked_all & self.idle & ~stored & ~self.words.valid)
        return m

    def _store(self, m: Module, first: Value) -> tuple[Value, Value]:
        """The queue's memory, whose output register offers the word.

        Whether words stand in it, and whether a block's last word leaves it.
        """
        place_bits = ceil_log2(self.ahead_words)
        shape = unsigned(program_word_layout(self._params).size)
        m.submodules.memory = memory = Memory(shape=shape, depth=self.ahead_words, init=[], attrs=NO_COLLISIONS)
        write, read = memory.write_port(), memory.read_port(domain="sync")
        tail, head = Signal(place_bits + 1), Signal(place_bits + 1)
        stored, moves = Signal(), Signal()
        m.d.comb += [
            self.r.ready.eq(1),
            write.en.eq(self.r.valid),
            write.addr.eq(tail[:place_bits]),
            write.data.eq(Cat(self.r.payload.data, self.r.payload.resp[1])),
            stored.eq(head != tail),
            moves.eq(stored & (~self.words.valid | self.words.ready)),
            read.en.eq(moves),
            read.addr.eq(head[:place_bits]),
            Value.cast(self.words.payload).eq(read.data),
        ]
        with m.If(self.start):
            m.d.sync += [tail.eq(first[:place_bits]), head.eq(first[:place_bits])]
        with m.Else():
            m.d.sync += [tail.eq(tail + self.r.valid), head.eq(head + moves)]
        with m.If(~self.words.valid | self.words.ready):
            m.d.sync += self.words.valid.eq(moves)
        return stored, moves & head[: self._block_bits].all()

    def _ask(self, m: Module, first: Value, block_freed: Value) -> Value:
        """A burst into the offer's register, while there are words to ask for and room for a block."""
        beats_bits = exact_log2(beats_per_instruction(self._params))
        block = self._params.axi_burst
        blocks = self.ahead_words // block
        next_word = Signal(word_address_bits(self._params))
        left = Signal(COUNT_BITS + beats_bits)
        room = Signal(range(blocks + 1), init=blocks)
        under_way = Signal(range(blocks + 1))
        rest_of_block = Signal(self._block_bits + 1)
        whole, ask = Signal(), Signal()
        m.d.comb += [
            rest_of_block.eq(block - next_word[: self._block_bits]),
            whole.eq(left[self._block_bits :].any() | (left[: self._block_bits] >= rest_of_block)),
            ask.eq((left != 0) & (room != 0) & ~self.halt & (~self.bursts.valid | self.bursts.ready)),
            self.idle.eq(under_way == 0),
        ]
        with m.If(self.start):
            count = Mux(self.length[COUNT_BITS:].any(), Const(-1, COUNT_BITS), self.length[:COUNT_BITS])
            m.d.sync += [next_word.eq(first), left.eq(count << beats_bits)]
        with m.Elif(ask):
            m.d.sync += [
                next_word.eq(Cat(Const(0, self._block_bits), next_word[self._block_bits :] + 1)),
                left.eq(Mux(whole, left - rest_of_block, 0)),
            ]
        with m.If(ask):
            m.d.sync += [
                self.bursts.payload.addr.eq(next_word),
                self.bursts.payload.beats_less_one.eq(Mux(whole, rest_of_block, left[: self._block_bits]) - 1),
                self.bursts.payload.last.eq(~whole),
            ]
        with m.If(ask):
            m.d.sync += self.bursts.valid.eq(1)
        with m.Elif(self.bursts.ready):
            m.d.sync += self.bursts.valid.eq(0)
        m.d.sync += [
            room.eq(room - ask + block_freed),
            under_way.eq(under_way + ask - (self.r.valid & self.r.payload.last)),
        ]
        return left == 0
