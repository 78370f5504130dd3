"""Timer of the CPU: a count of cycles, and an interrupt at a time."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.soc.wishbone import DATA_BITS, Wishbone


class Timer(wiring.Component):
    """Counts cycles, and raises an interrupt when the count reaches a value.

    Members
    -------
    bus
        A read returns the count. A write sets the count at which the interrupt comes, and ends the interrupt.
    interrupt
        The time has come.

    Handshake
    ---------
    Wishbone; an access ends in its first cycle.

    Timing
    ------
    `interrupt` rises in the cycle after the count has the value.

    Requirements
    ------------
    None.

    Reset and faults
    ----------------
    Reset starts the count at 0, and no interrupt comes before a write. The count wraps. No faults.
    """

    def __init__(self) -> None:
        super().__init__({"bus": In(Wishbone()), "interrupt": Out(1)})

    def elaborate(self, platform: object) -> Module:
        """A counter and a comparison."""
        m = Module()
        bus, count, until, armed = self.bus, Signal(DATA_BITS), Signal(DATA_BITS), Signal()
        m.d.comb += [bus.ack.eq(bus.cyc & bus.stb), bus.dat_r.eq(count)]
        m.d.sync += count.eq(count + 1)
        with m.If(bus.ack & bus.we):
            m.d.sync += [until.eq(bus.dat_w), armed.eq(1), self.interrupt.eq(0)]
        with m.Elif(armed & (count == until)):
            m.d.sync += self.interrupt.eq(1)
        return m
