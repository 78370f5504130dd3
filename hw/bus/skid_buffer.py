"""A two-entry stream buffer: full rate, and no combinational path from one side to the other."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from amaranth.hdl import Module, Mux, ShapeLike, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out


class SkidBuffer(wiring.Component):
    """A stream register in both directions: what goes in comes out `LATENCY` cycles later, or when it is taken.

    Parameters
    ----------
    shape
        Shape of the payload.
    """

    LATENCY = 1
    DEPTH = 2

    def __init__(self, shape: ShapeLike) -> None:
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})
        # Proofs look into it.
        self.spare = Signal(shape, reset_less=True)

    @staticmethod
    def model(steps: Iterable[tuple[Any, bool]]) -> Iterator[tuple[bool, Any]]:
        """What every cycle shows: whether there is room, and the item to be taken, or None.

        A step says what is on offer, or None, and whether the taker is ready.
        """
        held: deque[Any] = deque()
        for offer, ready in steps:
            room = len(held) < SkidBuffer.DEPTH
            yield room, held[0] if held else None
            if held and ready:
                held.popleft()
            if room and offer is not None:
                held.append(offer)

    def elaborate(self, platform: object) -> Module:
        """One output register, and one spare for the item that comes in the cycle in which the output stops."""
        m = Module()
        spare, spare_valid = self.spare, Signal()
        payload = Signal.like(spare, reset_less=True)
        m.d.comb += [self.i.ready.eq(~spare_valid), self.o.payload.eq(payload)]
        with m.If(~self.o.valid | self.o.ready):
            m.d.sync += [self.o.valid.eq(spare_valid | self.i.valid), spare_valid.eq(0)]
            m.d.sync += payload.eq(Mux(spare_valid, spare, self.i.payload))
        with m.Elif(self.i.valid):
            m.d.sync += spare_valid.eq(1)
        # Whatever comes may stand here while it does not count.
        with m.If(~spare_valid):
            m.d.sync += spare.eq(self.i.payload)
        return m
