"""Record of bus errors for the CPU, whose buses have none."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from intloom.hw.soc.wishbone import Wishbone


class BusErrors(wiring.Component):
    """A flag that bus errors set and that a read returns and clears.

    Members
    -------
    bus
        A read returns 1 if an error occurred since the last read, else 0. Writes have no effect.
    event
        An error occurred.

    Handshake
    ---------
    Wishbone; an access ends in its first cycle.

    Timing
    ------
    An event is visible to reads from the next cycle on.

    Requirements
    ------------
    None.

    Reset and faults
    ----------------
    Reset clears the flag. No faults.
    """

    def __init__(self) -> None:
        super().__init__({"bus": In(Wishbone()), "event": In(1)})

    def elaborate(self, platform: object) -> Module:
        """One register; an event in the cycle of a read is kept for the next read."""
        m = Module()
        occurred = Signal()
        access = self.bus.cyc & self.bus.stb
        m.d.comb += [self.bus.ack.eq(access), self.bus.dat_r.eq(occurred)]
        m.d.sync += occurred.eq(self.event | (occurred & ~(access & ~self.bus.we)))
        return m
