"""Writes result words to the scratchpad."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.bus.skid_buffer import SkidBuffer
from intloom.hw.credit_fifo import CreditFifo
from intloom.hw.ports import WritePort
from intloom.hw.spec.isa import SCRATCH_BITS
from intloom.hw.vector.raster_walker import RASTER_LAYOUT, RasterWalker


class ResultWriter(wiring.Component):
    """Writes each result word to the next address of a raster, under one byte mask.

    Parameters
    ----------
    word_bytes
        Bytes in a word.
    depth
        Results in flight or waiting; depth of the FIFO.

    Members
    -------
    config, mask
        Raster and byte mask.
    start
        Begin.
    active
        Writes remain.
    addressed
        At most the last `SkidBuffer.DEPTH` words remain.
    addr, hazard
        An address; whether one of the last `SkidBuffer.DEPTH` addresses equals it.
    halt
        Start no new request.
    credit_available, take_credit, push, word
        Input of the result FIFO; see `CreditFifo`.
    port
        Scratchpad write port.
    idle
        No request waits for its grant.

    Handshake
    ---------
    `port.valid` holds with address and data until the grant, also after `halt` rises. `push` needs no ready: its credit
    guarantees a FIFO entry.

    Timing
    ------
    One word a cycle while the port grants. `active` falls in the first cycle in which readers see all writes.

    Requirements
    ------------
    `config` is stable until `addressed`, `mask` while `active`. One `push` follows each `take_credit`.

    Reset and faults
    ----------------
    Soft reset ends the raster, empties the FIFO and restores all credits. A write outside the scratchpad is granted and
    dropped; the unit reports the fault.
    """

    def __init__(self, word_bytes: int, depth: int) -> None:
        self._word_bytes = word_bytes
        self._depth = depth
        super().__init__(
            {
                "config": In(RASTER_LAYOUT),
                "mask": In(word_bytes),
                "start": In(1),
                "active": Out(1),
                "addressed": Out(1),
                "addr": In(SCRATCH_BITS),
                "hazard": Out(1),
                "halt": In(1),
                "credit_available": Out(1),
                "take_credit": In(1),
                "push": In(1),
                "word": In(8 * word_bytes),
                "port": Out(WritePort(word_bytes)),
                "idle": Out(1),
            }
        )

    @staticmethod
    def model(config: Mapping[str, int], words: Iterable[int]) -> Iterator[tuple[int, int]]:
        """Each result's address and the result."""
        yield from zip((item["addr"] for item in RasterWalker.model(config)), words, strict=True)

    def elaborate(self, platform: object) -> Module:
        """FIFO and raster meet at the port; a skid buffer keeps the grant out of the raster's counters."""
        m = Module()
        m.submodules.queue = queue = CreditFifo(8 * self._word_bytes, self._depth)
        m.submodules.raster = raster = RasterWalker()
        m.submodules.addresses = addresses = SkidBuffer(SCRATCH_BITS)
        pending = Signal()
        taken = Signal()
        m.d.comb += [
            self.credit_available.eq(queue.credit_available),
            queue.take_credit.eq(self.take_credit),
            queue.push.eq(self.push),
            queue.word.eq(self.word),
            raster.config.eq(self.config),
            raster.start.eq(self.start),
            addresses.i.valid.eq(raster.o.valid),
            addresses.i.payload.eq(raster.o.payload.addr),
            raster.o.ready.eq(addresses.i.ready),
            # `active` falls one cycle after the last grant: from then on a read returns the written word.
            self.active.eq(raster.active | addresses.o.valid),
            self.addressed.eq(~raster.active),
            # `pending`: a request that has been offered stays offered in a halt.
            self.port.valid.eq(queue.o.valid & addresses.o.valid & (~self.halt | pending)),
            self.port.addr.eq(addresses.o.payload),
            self.port.data.eq(queue.o.payload),
            self.port.mask.eq(self.mask),
            taken.eq(self.port.valid & self.port.ready),
            addresses.o.ready.eq(taken),
            queue.o.ready.eq(taken),
            self.idle.eq(~pending),
        ]
        m.d.sync += pending.eq(self.port.valid & ~self.port.ready)
        last = [Signal(SCRATCH_BITS, name=f"last{i}", reset_less=True) for i in range(SkidBuffer.DEPTH)]
        with m.If(addresses.i.valid & addresses.i.ready):
            m.d.sync += [after.eq(before) for before, after in pairwise([addresses.i.payload, *last])]
        m.d.comb += self.hazard.eq(Cat(addr == self.addr for addr in last).any())
        return m
