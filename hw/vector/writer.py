"""Writes result words to the scratchpad."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.bus.skid_buffer import SkidBuffer
from intloom.hw.credit_fifo import CreditFifo
from intloom.hw.ports import WritePort
from intloom.hw.spec.isa import SCRATCH_BITS
from intloom.hw.vector.raster import RASTER_LAYOUT, RasterWalker


class ResultWriter(wiring.Component):
    """Puts each result word at the next place of a raster, under one mask.

    Parameters
    ----------
    word_bytes
        Bytes in a word.
    depth
        Results that may be under way or waiting.

    Members
    -------
    config, mask
        Where to write, and which bytes of each word; must hold while `active`.
    start
        Begin.
    active
        Words are to be written; low from the first cycle in which all writes can be seen by readers.
    halt
        Make no new request; one that waits for its grant stays.
    free, reserve, push, word
        Where results land; see `CreditFifo`.
    port
        The scratchpad.
    quiet
        No request waits for its grant.
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
                "halt": In(1),
                "credit_available": Out(1),
                "take_credit": In(1),
                "push": In(1),
                "word": In(8 * word_bytes),
                "port": Out(WritePort(word_bytes)),
                "quiet": Out(1),
            }
        )

    @staticmethod
    def model(config: Mapping[str, int], words: Iterable[int]) -> Iterator[tuple[int, int]]:
        """Each result's address and itself."""
        yield from zip((place["addr"] for place in RasterWalker.model(config)), words, strict=True)

    def elaborate(self, platform: object) -> Module:
        """Join queue and raster; a buffer between raster and port lets no grant reach into the raster's loops."""
        m = Module()
        m.submodules.queue = queue = CreditFifo(8 * self._word_bytes, self._depth)
        m.submodules.raster = raster = RasterWalker()
        m.submodules.places = places = SkidBuffer(SCRATCH_BITS)
        waits = Signal()
        taken = Signal()
        m.d.comb += [
            self.credit_available.eq(queue.credit_available),
            queue.take_credit.eq(self.take_credit),
            queue.push.eq(self.push),
            queue.word.eq(self.word),
            raster.config.eq(self.config),
            raster.start.eq(self.start),
            places.i.valid.eq(raster.o.valid),
            places.i.payload.eq(raster.o.payload.addr),
            raster.o.ready.eq(places.i.ready),
            self.active.eq(raster.active | places.o.valid),
            self.port.valid.eq(queue.o.valid & places.o.valid & (~self.halt | waits)),
            self.port.addr.eq(places.o.payload),
            self.port.data.eq(queue.o.payload),
            self.port.mask.eq(self.mask),
            taken.eq(self.port.valid & self.port.ready),
            places.o.ready.eq(taken),
            queue.o.ready.eq(taken),
            self.quiet.eq(~waits),
        ]
        m.d.sync += waits.eq(self.port.valid & ~self.port.ready)
        return m
