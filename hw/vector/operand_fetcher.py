"""Prefetches an operand's words from the scratchpad into a FIFO."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from amaranth.hdl import Cat, Module, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.bus.skid_buffer import SkidBuffer
from intloom.hw.credit_fifo import CreditFifo
from intloom.hw.ports import READ_LATENCY, ReadPort
from intloom.hw.vector.window_walker import FETCH_LAYOUT, TAP_LAYOUT

QUEUE_WORDS = 16
"""FIFO depth: it covers request buffer, read latency and credit turnaround, with slack for refused requests."""


def operand_layout(word_bytes: int) -> data.StructLayout:
    """A word of an operand and its position in its window."""
    return data.StructLayout({"word": unsigned(8 * word_bytes), "tap": TAP_LAYOUT})


class OperandFetcher(wiring.Component):
    """Turns addresses into words, in order, as far ahead as the FIFO has credits.

    A request takes a FIFO credit, waits in a skid buffer until the port grants it, and its word enters the FIFO. Words
    outside the input are made of `fill` and travel through the same stages without a read.

    Parameters
    ----------
    word_bytes
        Bytes in a word.

    Members
    -------
    halt
        Stop accepting requests; those in the skid buffer are still read.
    fill
        Byte of which words outside the input consist.
    i
        Addresses, with window position.
    port
        Scratchpad read port.
    o
        The words.
    idle
        No request waits for its grant.

    Handshake
    ---------
    `i` and `o` are streams; `valid` never waits for `ready`. `port.valid` holds with its address until the grant, also
    while `halt` is high.

    Timing
    ------
    One word a cycle while the port grants every request. From a request taken to its word on `o`: `LATENCY` = 8 cycles
    when granted at once. `halt` stops requests in the same cycle.

    Requirements
    ------------
    `fill` is stable while requests are in flight. The port returns data `READ_LATENCY` cycles after the grant.

    Reset and faults
    ----------------
    Soft reset empties the buffers and restores all credits. A request outside the scratchpad is granted and returns
    undefined data; the unit reports the fault.
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
                "idle": Out(1),
            }
        )

    @staticmethod
    def model(item: Mapping[str, int], words: Sequence[bytes], fill: int) -> bytes:
        """The word for an item, from a scratchpad that holds `words`."""
        return words[item["addr"]] if item["inside"] else bytes([fill]) * len(words[0])

    def elaborate(self, platform: object) -> Module:
        """Take a credit, wait in the skid buffer, request, and store the word in the FIFO.

        The request buffer directly before the port drives it from registers, and the grant ends there. The buffer
        behind the FIFO keeps `o.ready` out of the FIFO's credit count.
        """
        m = Module()
        m.submodules.queue = queue = CreditFifo(operand_layout(self._word_bytes), QUEUE_WORDS)
        m.submodules.requests = requests = SkidBuffer(FETCH_LAYOUT)
        m.submodules.words = words = SkidBuffer(operand_layout(self._word_bytes))
        wiring.connect(m, queue.o, words.i)
        wiring.connect(m, words.o, wiring.flipped(self.o))
        accept = Signal()
        request = requests.o.payload
        m.d.comb += [
            # The credit is taken before the request buffer, not at the grant: the buffer's request then needs nothing
            # but the grant, and a halt never withdraws it.
            accept.eq(queue.credit_available & ~self.halt),
            requests.i.payload.eq(self.i.payload),
            requests.i.valid.eq(self.i.valid & accept),
            self.i.ready.eq(requests.i.ready & accept),
            queue.take_credit.eq(self.i.valid & self.i.ready),
            self.port.valid.eq(requests.o.valid & request.inside),
            self.port.addr.eq(request.addr),
            requests.o.ready.eq(~request.inside | self.port.ready),
            self.idle.eq(~requests.o.valid),
        ]
        self._deliver(m, queue, requests)
        return m

    def _deliver(self, m: Module, queue: CreditFifo, requests: SkidBuffer) -> None:
        # Fill words take the same READ_LATENCY stages as reads: words stay in order without tags.
        in_flight = Signal(READ_LATENCY)
        taken, item = requests.o.valid & requests.o.ready, requests.o.payload
        marks = [
            Signal(data.StructLayout({"inside": 1, "tap": TAP_LAYOUT}), name=f"mark{i}", reset_less=True)
            for i in range(READ_LATENCY)
        ]
        m.d.sync += [
            in_flight.eq(Cat(taken, in_flight)),
            marks[0].inside.eq(item.inside),
            marks[0].tap.eq(item.tap),
            *(after.eq(before) for before, after in pairwise(marks)),
        ]
        m.d.comb += [
            queue.push.eq(in_flight[-1]),
            queue.word.tap.eq(marks[-1].tap),
            queue.word.word.eq(self.port.data),
        ]
        with m.If(~marks[-1].inside):
            m.d.comb += queue.word.word.eq(self.fill.replicate(self._word_bytes))
