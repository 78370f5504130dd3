"""Instruction fetch: the program's words in long bursts, well ahead of their use."""

from __future__ import annotations

from collections.abc import Iterator

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2, exact_log2

from intloom.hw.bus.axi4 import read_layout
from intloom.hw.dma.bursts import burst_layout
from intloom.hw.dma.runs import word_address_bits
from intloom.hw.memory.bank import NO_COLLISIONS
from intloom.hw.spec.isa import COUNT_BITS, DRAM_BITS, INSTRUCTION_BYTES
from intloom.hw.spec.params import HardwareParams

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
    Programs longer than instructions can be numbered end at the last number. The first burst is offered `LATENCY`
    cycles after the start, and a word `WORD_LATENCY` cycles after it came.

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
        The whole program has been handed out; told a cycle later.
    idle
        No burst is under way.
    """

    LATENCY = 4
    WORD_LATENCY = 2

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

    @staticmethod
    def model(first: int, length: int, params: HardwareParams) -> Iterator[tuple[int, int]]:
        """First word and length of every burst that reads a program of `length` instructions from word `first` on."""
        end = first + min(length, (1 << COUNT_BITS) - 1) * beats_per_instruction(params)
        while first < end:
            block_end = (first // params.axi_burst + 1) * params.axi_burst
            yield first % (1 << word_address_bits(params)), min(end, block_end) - first
            first = block_end

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
        m.d.sync += self.exhausted.eq(asked_all & self.idle & ~stored & ~self.words.valid)
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
        with m.If(self.start | self.r.valid):
            m.d.sync += tail.eq(Mux(self.start, first[:place_bits], tail + 1))
        with m.If(self.start | moves):
            m.d.sync += head.eq(Mux(self.start, first[:place_bits], head + 1))
        with m.If(~self.words.valid | self.words.ready):
            m.d.sync += self.words.valid.eq(moves)
        return stored, moves & head[: self._block_bits].all()

    def _ask(self, m: Module, first: Value, block_freed: Value) -> Value:
        """Bursts, while there are words to ask for and room for a block; whether all have been asked for."""
        beats_bits = exact_log2(beats_per_instruction(self._params))
        blocks = self.ahead_words // self._params.axi_burst
        next_word = Signal(word_address_bits(self._params), reset_less=True)
        at = next_word[: self._block_bits]
        # Below zero: the words that a whole block would have had beyond the program's end.
        left = Signal(signed(COUNT_BITS + beats_bits + 1), reset_less=True)
        size = Signal(range(-self._params.axi_burst, self._params.axi_burst), reset_less=True)
        room = Signal(range(blocks + 1), init=blocks)
        under_way = Signal(range(blocks + 1))
        ask, none_left = Signal(), Signal()
        m.d.comb += self.idle.eq(under_way == 0)
        with m.FSM() as fsm:
            with m.State("REST"):
                count = Mux(self.length[COUNT_BITS:].any(), Const(-1, COUNT_BITS), self.length[:COUNT_BITS])
                m.d.sync += [next_word.eq(first), left.eq(count << beats_bits)]
                with m.If(self.start):
                    m.next = "MEASURE"
            with m.State("MEASURE"):
                m.d.sync += [size.eq(at - self._params.axi_burst), none_left.eq(left == 0)]
                m.next = "COUNT"
            with m.State("COUNT"):
                m.d.sync += [left.eq(left + size), size.eq(Cat(left[: self._block_bits], 0))]
                m.next = "ASK"
                with m.If(none_left):
                    m.next = "REST"
            with m.State("ASK"):
                m.d.comb += ask.eq((room != 0) & ~self.halt & ~self.bursts.valid)
                with m.If(ask):
                    next_block = next_word[self._block_bits :] + 1
                    m.d.sync += next_word.eq(next_block << self._block_bits)
                    m.next = "MEASURE"
                    with m.If(left < 0):
                        m.next = "REST"
        self._offer(m, ask, next_word, left, size)
        m.d.sync += [
            room.eq(room - ask + block_freed),
            under_way.eq(under_way + ask - (self.r.valid & self.r.payload.last)),
        ]
        return fsm.ongoing("REST")

    def _offer(self, m: Module, ask: Value, next_word: Signal, left: Signal, size: Signal) -> None:
        """Put a burst on offer: to the block's end, or when the program ends before it, `size` words."""
        beyond = left < 0
        burst = Signal(burst_layout(self._params), reset_less=True)
        m.d.comb += self.bursts.payload.eq(burst)
        with m.If(ask):
            m.d.sync += [
                self.bursts.valid.eq(1),
                burst.addr.eq(next_word),
                burst.beats_less_one.eq(
                    Mux(beyond, size[: self._block_bits] - 1, ~next_word[: self._block_bits])[: self._block_bits]
                ),
                burst.last.eq(beyond),
            ]
        with m.Elif(self.bursts.ready):
            m.d.sync += self.bursts.valid.eq(0)
