"""Instruction fetch: prefetches the program's words in long bursts."""

from collections.abc import Iterator

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2, exact_log2

from intloom.hw.bus.axi4 import read_layout
from intloom.hw.dma.bursts import burst_layout
from intloom.hw.dma.runs import word_address_bits
from intloom.hw.ports import WindowPort
from intloom.hw.spec.isa import COUNT_BITS, DRAM_BITS, INSTRUCTION_BYTES
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.timing import PREFETCH_INSTRUCTIONS
from intloom.hw.yosys_attributes import NO_COLLISIONS

LENGTH_REGISTER_BITS = 32


def beats_per_instruction(params: HardwareParams) -> int:
    """Bus words per instruction."""
    return INSTRUCTION_BYTES // params.word_bytes


def program_word_layout(params: HardwareParams) -> data.StructLayout:
    """A word of the program, and whether its read returned an error response."""
    return data.StructLayout({"data": params.word_bits, "error": 1})


class Fetch(wiring.Component):
    """Reads a program into a prefetch queue and passes its words on in order.

    A burst covers one aligned block of `burst_words` words, or the part of it that belongs to the program, so no burst
    crosses 4 KiB. Space for a whole block is reserved before its burst is issued, so read data never stalls on the bus.
    A program with more instructions than an index can number ends at the last index.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    window
        The memory that may be addressed.
    start, program, length
        Start to fetch `length` instructions from word offset `program` on.
    halt
        Issue no further bursts.
    bursts
        Burst requests.
    r
        Read data.
    words
        Words of the program.
    exhausted
        All words have been taken.
    outside
        The program is not inside the window: nothing is fetched.
    idle
        No burst is outstanding.

    Handshake
    ---------
    `start` is a pulse; `program` and `length` are read in its cycle. `outside` stays high until
    reset. `bursts` and `words` are streams. `r.ready` is always high.

    Timing
    ------
    From `start` to the first `bursts.valid`: `LATENCY` = 4 cycles. From a word on `r` to `words.valid`: `WORD_LATENCY`
    = 2 cycles; one word per cycle. A burst takes at least 3 cycles to compute. `exhausted` rises 2 cycles after the
    last word transfers.

    Requirements
    ------------
    `window` is stable from `start` on. `start` comes only after a reset.

    Reset and faults
    ----------------
    While `halt` is high, data of outstanding bursts is accepted. Reset requires `idle`. An error response is passed on
    in `words.payload.error`; dispatch raises the fault. `FaultLatch` takes `outside` as OUTSIDE_WINDOW.
    """

    LATENCY = 4
    WORD_LATENCY = 2

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        self._block_bits = exact_log2(params.burst_words)
        super().__init__(
            {
                "window": In(WindowPort(params)),
                "start": In(1),
                "program": In(DRAM_BITS),
                "length": In(LENGTH_REGISTER_BITS),
                "halt": In(1),
                "bursts": Out(stream.Signature(burst_layout(params))),
                "r": In(stream.Signature(read_layout(params.word_bits))),
                "words": Out(stream.Signature(program_word_layout(params))),
                "exhausted": Out(1),
                "outside": Out(1),
                "idle": Out(1),
            }
        )

    @staticmethod
    def model(first: int, length: int, params: HardwareParams) -> Iterator[tuple[int, int]]:
        """Yield first word and beats of each burst for a program of `length` instructions from word `first` on."""
        end = first + min(length, (1 << COUNT_BITS) - 1) * beats_per_instruction(params)
        while first < end:
            block_end = (first // params.burst_words + 1) * params.burst_words
            yield first % (1 << word_address_bits(params)), min(end, block_end) - first
            first = block_end

    @property
    def prefetch_words(self) -> int:
        """Depth of the queue in words: at least two blocks, so that one is in flight while the other is consumed."""
        return max(2 * self._params.burst_words, PREFETCH_INSTRUCTIONS * beats_per_instruction(self._params))

    def elaborate(self, platform: object) -> Module:
        """Issue bursts as space allows; write words into the queue and read them out."""
        m = Module()
        first = Signal(word_address_bits(self._params))
        m.d.comb += first.eq(self.window.base + self.program)
        stored, block_read = self._store(m, first)
        all_issued = self._issue(m, first, block_read)
        m.d.sync += self.exhausted.eq(all_issued & self.idle & ~stored & ~self.words.valid)
        return m

    def _store(self, m: Module, first: Value) -> tuple[Value, Value]:
        """The queue's memory; its output register is the payload of `words`.

        Returns whether the memory holds words, and whether the last word of a block is read. Queue addresses are the
        low bits of word addresses, plus one bit that distinguishes full from empty: blocks need no address of their
        own.
        """
        index_bits = ceil_log2(self.prefetch_words)
        shape = unsigned(program_word_layout(self._params).size)
        m.submodules.memory = memory = Memory(shape=shape, depth=self.prefetch_words, init=[], attrs=NO_COLLISIONS)
        write, read = memory.write_port(), memory.read_port(domain="sync")
        tail, head = Signal(index_bits + 1), Signal(index_bits + 1)
        stored, advance = Signal(), Signal()
        m.d.comb += [
            # Space for the whole burst was reserved before its request. READY may precede VALID (AXI4 A3.2.1).
            self.r.ready.eq(1),
            write.en.eq(self.r.valid),
            write.addr.eq(tail[:index_bits]),
            # Both error responses, SLVERR and DECERR, have bit 1 set (AXI4 A3.4.4).
            write.data.eq(Cat(self.r.payload.data, self.r.payload.resp[1])),
            stored.eq(head != tail),
            advance.eq(stored & (~self.words.valid | self.words.ready)),
            read.en.eq(advance),
            read.addr.eq(head[:index_bits]),
            Value.cast(self.words.payload).eq(read.data),
        ]
        with m.If(self.start | self.r.valid):
            m.d.sync += tail.eq(Mux(self.start, first[:index_bits], tail + 1))
        with m.If(self.start | advance):
            m.d.sync += head.eq(Mux(self.start, first[:index_bits], head + 1))
        with m.If(~self.words.valid | self.words.ready):
            m.d.sync += self.words.valid.eq(advance)
        return stored, advance & head[: self._block_bits].all()

    def _issue(self, m: Module, first: Value, block_read: Value) -> Value:
        """Issue bursts while words remain and a block of space is free; returns whether all have been issued."""
        beats_bits = exact_log2(beats_per_instruction(self._params))
        blocks = self.prefetch_words // self._params.burst_words
        next_word = Signal(word_address_bits(self._params), reset_less=True)
        at = next_word[: self._block_bits]
        # Negative after the last block: by the words of that block beyond the end of the program.
        left = Signal(signed(COUNT_BITS + beats_bits + 1), reset_less=True)
        size = Signal(range(-self._params.burst_words, self._params.burst_words), reset_less=True)
        space = Signal(range(blocks + 1), init=blocks)
        outstanding = Signal(range(blocks + 1))
        issue, none_left = Signal(), Signal()
        # Words from the base to the end of the program. Whether they are too many is known in ISSUE.
        reach = Signal(DRAM_BITS + 1, reset_less=True)
        outside = Signal(reset_less=True)
        m.d.sync += outside.eq((reach > self.window.limit) | self.window.wraps)
        m.d.comb += self.idle.eq(outstanding == 0)
        with m.FSM() as fsm:
            with m.State("IDLE"):
                count = Mux(self.length[COUNT_BITS:].any(), (1 << COUNT_BITS) - 1, self.length[:COUNT_BITS])
                # Loaded in every idle cycle: `start` changes only the state and drives no wide clock enable.
                m.d.sync += [
                    next_word.eq(first),
                    left.eq(count << beats_bits),
                    reach.eq(self.program + (count << beats_bits)),
                ]
                with m.If(self.start):
                    m.next = "MEASURE"
            with m.State("MEASURE"):
                m.d.sync += [size.eq(at - self._params.burst_words), none_left.eq(left == 0)]
                m.next = "COUNT"
            with m.State("COUNT"):
                m.d.sync += [left.eq(left + size), size.eq(Cat(left[: self._block_bits], 0))]
                m.next = "ISSUE"
                with m.If(none_left):
                    m.next = "IDLE"
            with m.State("ISSUE"):
                # A halt withdraws no burst: VALID stays until the handshake (AXI4 A3.2.1).
                m.d.comb += [
                    issue.eq((space != 0) & ~self.halt & ~self.bursts.valid & ~outside),
                    self.outside.eq(outside),
                ]
                with m.If(issue):
                    # Blocks are aligned and no longer than 4 KiB, so no burst crosses a 4 KiB boundary (AXI4 A3.4.1).
                    next_block = next_word[self._block_bits :] + 1
                    m.d.sync += next_word.eq(next_block << self._block_bits)
                    m.next = "MEASURE"
                    with m.If(left < 0):
                        m.next = "IDLE"
        self._offer(m, issue, next_word, left, size)
        m.d.sync += [
            space.eq(space - issue + block_read),
            outstanding.eq(outstanding + issue - (self.r.valid & self.r.payload.last)),
        ]
        return fsm.ongoing("IDLE")

    def _offer(self, m: Module, issue: Value, next_word: Signal, left: Signal, size: Signal) -> None:
        """Offer a burst up to the end of the block, or of `size` words if the program ends before it."""
        beyond = left < 0
        burst = Signal(burst_layout(self._params), reset_less=True)
        m.d.comb += self.bursts.payload.eq(burst)
        with m.If(issue):
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
