"""A queue for words whose places are reserved before they set out, so that nothing on their way ever has to wait."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from amaranth.hdl import Module, Mux, ShapeLike, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2


class CreditFifo(wiring.Component):
    """Words arrive with `push` at any time after a place was reserved, and leave in order from `o`.

    Whoever sends a word first reserves its place, which it may only do while `free` is high. Then the pipeline that
    the word travels through needs no way to stop. Reserved in the cycle of their push, words stand in a plain queue.
    Throughput is a word a cycle when `depth` is at least the cycles from a reservation to the word's arrival, plus
    `TURNAROUND`.

    Parameters
    ----------
    shape
        Shape of a word.
    depth
        Places, a power of two.

    Members
    -------
    free
        A place can be reserved in this cycle.
    reserve
        Take a place. Only while `free` is high.
    push, word
        A word arrives in its place. There must be a reserved place that no earlier word has taken.
    o
        The words, from `LATENCY` cycles after their arrival.
    """

    LATENCY = 1
    TURNAROUND = 2
    """Cycles from a word's arrival until its place can be reserved again, when it is taken at once."""

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
        # Proofs look into these.
        self.memory = Memory(shape=unsigned(bits), depth=depth, init=[])
        self.head = Signal(ceil_log2(depth))
        self.tail = Signal(ceil_log2(depth))
        self.here = Signal(range(depth + 1))
        self.places = Signal(range(depth + 1), init=depth)

    @staticmethod
    def model(depth: int, steps: Iterable[tuple[bool, Any, bool]]) -> Iterator[tuple[bool, Any]]:
        """What every cycle shows: whether a place is free, and the word to be taken, or None.

        A step says whether a place is reserved, which word arrives, or None, and whether the taker is ready.
        """
        words: deque[Any] = deque()
        claimed = 0
        for reserves, arrives, ready in steps:
            yield claimed < depth, words[0] if words else None
            claimed += reserves
            if words and ready:
                words.popleft()
                claimed -= 1
            if arrives is not None:
                words.append(arrives)

    def elaborate(self, platform: object) -> Module:
        """A small memory with two pointers, and a count of free places."""
        m = Module()
        m.submodules.memory = self.memory
        write = self.memory.write_port()
        read = self.memory.read_port(domain="comb")
        taken = Signal()
        m.d.comb += [
            write.addr.eq(self.tail),
            write.data.eq(self.word),
            write.en.eq(self.push),
            read.addr.eq(self.head),
            self.o.payload.eq(read.data),
            taken.eq(self.o.valid & self.o.ready),
        ]
        with m.If(self.push):
            m.d.sync += self.tail.eq(self.tail + 1)
        with m.If(taken):
            m.d.sync += self.head.eq(self.head + 1)
        self._count(m, taken)
        return m

    def _count(self, m: Module, taken: Signal) -> None:
        """Words that are here, and places that nobody has reserved; the flags are registers of their own."""
        free = Signal(init=1)
        valid = Signal()
        m.d.comb += [self.credit_available.eq(free), self.o.valid.eq(valid)]
        # Up or down is told by the side that is known early; that a word is taken comes from far.
        with m.If(self.push ^ taken):
            m.d.sync += [self.here.eq(self.here + Mux(self.push, 1, -1)), valid.eq(self.push | (self.here != 1))]
        with m.If(self.take_credit ^ taken):
            m.d.sync += [
                self.places.eq(self.places + Mux(self.take_credit, -1, 1)),
                free.eq(~self.take_credit | (self.places != 1)),
            ]
