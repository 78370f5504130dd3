"""A FIFO with credits: an entry is reserved before a word enters the pipeline that leads to it."""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from amaranth.hdl import Module, Mux, Shape, ShapeLike, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from intloom.hw.memory.macro import LEAST_BITS, MemoryMacros
from intloom.hw.yosys_attributes import NO_COLLISIONS


class CreditFifo(wiring.Component):
    """Stores words in order; a sender takes a credit for an entry before it sends a word.

    A word may arrive any number of cycles after its credit was taken, so the pipeline between sender and FIFO needs no
    back-pressure. With `take_credit` and `push` in the same cycle it is a plain FIFO. A credit returns when its word
    is taken from `o`.

    Parameters
    ----------
    shape
        Shape of a word.
    depth
        Number of entries, a power of two.

    Members
    -------
    credit_available
        An entry can be reserved in this cycle.
    take_credit
        Reserve an entry.
    push, word
        Write a word into the entry that was reserved first among those without a word.
    o
        The words, in order.

    Handshake
    ---------
    `o` is a stream: `o.valid` does not depend on `o.ready`, and `o.payload` is stable until it is taken.
    `credit_available` is a register. `push` has no ready: the credit guarantees the entry.

    Timing
    ------
    From `push` to `o.valid`: `LATENCY` = 1 cycle. From a word's `push` to its credit being available again:
    `TURNAROUND` = 2 cycles, if the word is taken at once. One word per cycle when `depth` is at least the cycles from
    `take_credit` to `push`, plus `TURNAROUND`.

    Requirements
    ------------
    `take_credit` only while `credit_available` is high. `push` only while an entry is reserved and has no word.

    Reset and faults
    ----------------
    Reset empties the FIFO and returns all credits; senders and their pipelines must be reset with it. No faults.
    """

    LATENCY = 1
    TURNAROUND = 2
    """Cycles from `push` to the credit being available again, if the word is taken at once."""

    def __init__(self, shape: ShapeLike, depth: int) -> None:
        super().__init__(
            {
                "credit_available": Out(1),
                "take_credit": In(1),
                "push": In(1),
                "word": In(shape),
                "o": Out(stream.Signature(shape)),
            }
        )
        bits = data.StructLayout({"word": shape}).size
        # Attributes, because the proofs of tests/hw/formal read them.
        self.memory = Memory(shape=unsigned(bits), depth=depth, init=[], attrs=NO_COLLISIONS)
        self.head = Signal(ceil_log2(depth))
        self.tail = Signal(ceil_log2(depth))
        self.level = Signal(range(depth + 1))
        self.credits = Signal(range(depth + 1), init=depth)

    @staticmethod
    def model(depth: int, steps: Iterable[tuple[bool, Any, bool]]) -> Iterator[tuple[bool, Any]]:
        """Outputs of every cycle: `credit_available`, and the word on `o` or None.

        A step has the inputs of a cycle: `take_credit`, the word that is pushed or None, and `o.ready`.
        """
        words: deque[Any] = deque()
        taken = 0
        for takes_credit, pushed, ready in steps:
            yield taken < depth, words[0] if words else None
            taken += takes_credit
            if words and ready:
                words.popleft()
                taken -= 1
            if pushed is not None:
                words.append(pushed)

    def elaborate(self, platform: object) -> Module:
        """A memory with head and tail pointers, a level and a credit counter.

        The memory is distributed RAM, or a macro behind an output register with equal outputs in every cycle.
        """
        m = Module()
        m.submodules.memory = self.memory
        write = self.memory.write_port()
        fire = Signal()
        m.d.comb += [
            write.addr.eq(self.tail),
            write.data.eq(self.word),
            write.en.eq(self.push),
            fire.eq(self.o.valid & self.o.ready),
        ]
        with m.If(self.push):
            m.d.sync += self.tail.eq(self.tail + 1)
        if self._is_macro(platform):
            self._prefetch(m, fire)
        else:
            # A combinational read port makes this distributed RAM: a word is on offer 1 cycle after its push, without
            # a prefetch register behind the memory.
            read = self.memory.read_port(domain="comb")
            m.d.comb += [read.addr.eq(self.head), self.o.payload.eq(read.data)]
            with m.If(fire):
                m.d.sync += self.head.eq(self.head + 1)
        self._count(m, fire)
        return m

    def _is_macro(self, platform: object) -> bool:
        """Whether the memory is one of those that are registers otherwise, and large enough for a macro."""
        bits = Shape.cast(self.memory.shape).width * self.memory.depth
        return isinstance(platform, MemoryMacros) and bits >= LEAST_BITS

    def _prefetch(self, m: Module, fire: Signal) -> None:
        """Keep the word on offer in the memory's output register; `head` is the address of the word behind it.

        A word that is pushed when none is behind the one that leaves goes past the memory.
        """
        read = self.memory.read_port()
        passes, passed = Signal(), Signal()
        word = Signal(self.memory.shape, reset_less=True)
        m.d.comb += [
            passes.eq(self.push & Mux(fire, self.level == 1, self.level == 0)),
            read.en.eq(fire),
            read.addr.eq(self.head),
            self.o.payload.eq(Mux(passed, word, read.data)),
        ]
        with m.If(fire):
            m.d.sync += passed.eq(0)
        with m.If(passes):
            m.d.sync += [passed.eq(1), word.eq(self.word)]
        with m.If(passes | (fire & (self.level != 1))):
            m.d.sync += self.head.eq(self.head + 1)

    def _count(self, m: Module, fire: Signal) -> None:
        """Count stored words and credits; `o.valid` and `credit_available` are registers, not comparisons."""
        available = Signal(init=1)
        valid = Signal()
        m.d.comb += [self.credit_available.eq(available), self.o.valid.eq(valid)]
        # The direction comes from `push` or `take_credit`, which arrive early. `fire` ends a long path through the
        # receiver's ready, so it drives only the enable.
        with m.If(self.push ^ fire):
            m.d.sync += [self.level.eq(self.level + Mux(self.push, 1, -1)), valid.eq(self.push | (self.level != 1))]
        with m.If(self.take_credit ^ fire):
            m.d.sync += [
                self.credits.eq(self.credits + Mux(self.take_credit, -1, 1)),
                available.eq(~self.take_credit | (self.credits != 1)),
            ]
