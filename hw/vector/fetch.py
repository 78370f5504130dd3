"""Reads an operand's words from the scratchpad, as far ahead as its queue has room."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from amaranth.hdl import Cat, Module, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.bus.skid_buffer import SkidBuffer
from intloom.hw.credit_fifo import CreditFifo
from intloom.hw.ports import READ_LATENCY, ReadPort
from intloom.hw.vector.window import FETCH_LAYOUT, TAP_LAYOUT

QUEUE_WORDS = 16
"""A request's way through its buffer, read latency, the queue's turnaround, and some slack for refused requests."""


def operand_layout(word_bytes: int) -> data.StructLayout:
    """A word of an operand and its place in its window."""
    return data.StructLayout({"word": unsigned(8 * word_bytes), "tap": TAP_LAYOUT})


class OperandFetch(wiring.Component):
    """Turns addresses into words, in order, one a cycle when the port grants every request.

    Parameters
    ----------
    word_bytes
        Bytes in a word.

    Members
    -------
    halt
        Take nothing more; what is in the buffer is still asked for.
    fill
        The byte that words outside the input are made of.
    i
        What to read.
    port
        The scratchpad.
    o
        The words, `LATENCY` cycles after what to read, if the port grants at once.
    quiet
        The buffer is empty.
    """

    LATENCY = SkidBuffer.LATENCY + READ_LATENCY + CreditFifo.LATENCY + SkidBuffer.LATENCY

    def __init__(self, word_bytes: int) -> None:
        self._word_bytes = word_bytes
        super().__init__(
            {
                "halt": In(1),
                "fill": In(8),
                "i": In(stream.Signature(FETCH_LAYOUT)),
                "port": Out(ReadPort(word_bytes)),
                "o": Out(stream.Signature(operand_layout(word_bytes))),
                "quiet": Out(1),
            }
        )

    @staticmethod
    def model(item: Mapping[str, int], words: Sequence[bytes], fill: int) -> bytes:
        """The word that comes for an item, of a scratchpad that holds `words`."""
        return words[item["addr"]] if item["inside"] else bytes([fill]) * len(words[0])

    def elaborate(self, platform: object) -> Module:
        """Reserve a place, wait in a buffer, ask, and let the word land.

        The buffer stands right before the port: what asks comes from registers, and a grant goes no further than there.
        Another keeps whoever takes a word away from the queue's counts. Words outside the input travel beside those
        that are read.
        """
        m = Module()
        m.submodules.queue = queue = CreditFifo(operand_layout(self._word_bytes), QUEUE_WORDS)
        m.submodules.requests = requests = SkidBuffer(FETCH_LAYOUT)
        m.submodules.words = words = SkidBuffer(operand_layout(self._word_bytes))
        wiring.connect(m, queue.o, words.i)
        wiring.connect(m, words.o, wiring.flipped(self.o))
        may = Signal()
        asked = requests.o.payload
        m.d.comb += [
            may.eq(queue.credit_available & ~self.halt),
            requests.i.payload.eq(self.i.payload),
            requests.i.valid.eq(self.i.valid & may),
            self.i.ready.eq(requests.i.ready & may),
            queue.take_credit.eq(self.i.valid & self.i.ready),
            self.port.valid.eq(requests.o.valid & asked.inside),
            self.port.addr.eq(asked.addr),
            requests.o.ready.eq(~asked.inside | self.port.ready),
            self.quiet.eq(~requests.o.valid),
        ]
        self._land(m, queue, requests)
        return m

    def _land(self, m: Module, queue: CreditFifo, requests: SkidBuffer) -> None:
        under_way = Signal(READ_LATENCY)
        taken, item = requests.o.valid & requests.o.ready, requests.o.payload
        marks = [
            Signal(data.StructLayout({"inside": 1, "tap": TAP_LAYOUT}), name=f"mark{i}", reset_less=True)
            for i in range(READ_LATENCY)
        ]
        m.d.sync += [
            under_way.eq(Cat(taken, under_way)),
            marks[0].inside.eq(item.inside),
            marks[0].tap.eq(item.tap),
            *(after.eq(before) for before, after in pairwise(marks)),
        ]
        m.d.comb += [
            queue.push.eq(under_way[-1]),
            queue.word.tap.eq(marks[-1].tap),
            queue.word.word.eq(self.port.data),
        ]
        with m.If(~marks[-1].inside):
            m.d.comb += queue.word.word.eq(self.fill.replicate(self._word_bytes))
