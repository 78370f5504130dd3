"""A skid buffer: a FIFO of two entries without a combinational path between its sides."""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from amaranth.hdl import Module, ShapeLike, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from intloom.hw.yosys_attributes import NO_COLLISIONS


class SkidBuffer(wiring.Component):
    """Registers a stream in both directions at full rate.

    The second entry takes the item that arrives in the cycle in which the output stalls. The buffer cuts the paths of
    `valid`, `payload` and `ready`.

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
        # Distributed RAM: instead of two registers and a multiplexer, 2/3 of a LUT for each bit on the 7 series.
        # Attributes, because the proofs of tests/hw/formal read them.
        self.memory = Memory(shape=shape, depth=self.DEPTH, init=[], attrs=NO_COLLISIONS)
        self.state = Signal(data.StructLayout({"head": 1, "valid": 1, "full": 1}))

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
        """A memory of two words; `valid` and `full` are registers."""
        m = Module()
        m.submodules.memory = self.memory
        write, read = self.memory.write_port(), self.memory.read_port(domain="comb")
        head, valid, full = self.state.head, self.state.valid, self.state.full
        enter, leave = self.i.valid & ~full, valid & self.o.ready
        m.d.comb += [
            write.addr.eq(head ^ valid),
            write.data.eq(self.i.payload),
            # Written whenever there is a free entry, valid or not: `i.valid` then drives no wide enable.
            write.en.eq(~full),
            read.addr.eq(head),
            self.o.payload.eq(read.data),
            self.o.valid.eq(valid),
            self.i.ready.eq(~full),
        ]
        with m.If(leave):
            m.d.sync += head.eq(~head)
        with m.If(enter ^ leave):
            m.d.sync += [valid.eq(enter | full), full.eq(enter & valid)]
        return m
