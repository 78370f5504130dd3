"""A skid buffer: a two-entry stream register without a combinational path between its sides."""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from amaranth.hdl import Module, Mux, ShapeLike, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out


class SkidBuffer(wiring.Component):
    """Registers a stream in both directions at full rate.

    An output register offers an item; a second register, the spare, takes the item that arrives in the cycle in which
    the output stalls. It cuts the paths of `valid`, `payload` and `ready`.

    Parameters
    ----------
    shape
        Shape of the payload.

    Members
    -------
    i, o
        The stream before and after the buffer.

    Handshake
    ---------
    Both sides are streams. `i.ready` and `o.valid` are registers; `o.payload` is stable while `o` stalls.

    Timing
    ------
    One item per cycle. From an item's transfer on `i` to `o.valid` with that item: `LATENCY` = 1 cycle if the buffer is
    empty or `o` fires in the cycle of the transfer.

    Requirements
    ------------
    None beyond the stream rules.

    Reset and faults
    ----------------
    Reset empties the buffer (`DEPTH` = 2 entries). No faults.
    """

    LATENCY = 1
    DEPTH = 2

    def __init__(self, shape: ShapeLike) -> None:
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})
        # An attribute, because the proofs of tests/hw/formal read it.
        self.spare = Signal(shape, reset_less=True)

    @staticmethod
    def model(steps: Iterable[tuple[Any, bool]]) -> Iterator[tuple[bool, Any]]:
        """Outputs of every cycle: `i.ready`, and the item on `o` or None.

        A step has the inputs of a cycle: the item on `i` or None, and `o.ready`.
        """
        stored: deque[Any] = deque()
        for offer, ready in steps:
            ready_in = len(stored) < SkidBuffer.DEPTH
            yield ready_in, stored[0] if stored else None
            if stored and ready:
                stored.popleft()
            if ready_in and offer is not None:
                stored.append(offer)

    def elaborate(self, platform: object) -> Module:
        """An output register, and a spare register for the item that arrives as the output stalls."""
        m = Module()
        spare, spare_valid = self.spare, Signal()
        payload = Signal.like(spare, reset_less=True)
        m.d.comb += [self.i.ready.eq(~spare_valid), self.o.payload.eq(payload)]
        # The output register loads only here: `valid` and its payload must not change before the handshake (AXI4
        # A3.2.1).
        with m.If(~self.o.valid | self.o.ready):
            m.d.sync += [self.o.valid.eq(spare_valid | self.i.valid), spare_valid.eq(0)]
            m.d.sync += payload.eq(Mux(spare_valid, spare, self.i.payload))
        with m.Elif(self.i.valid):
            m.d.sync += spare_valid.eq(1)
        # Loaded whenever it is empty, valid or not: `i.valid` then drives no wide clock enable.
        with m.If(~spare_valid):
            m.d.sync += spare.eq(self.i.payload)
        return m
