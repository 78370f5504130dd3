"""Transmitter of a UART: 8 data bits, no parity, 1 stop bit."""

from amaranth.hdl import C, Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.soc.wishbone import Wishbone


class UartTransmitter(wiring.Component):
    """Sends the low byte of every write on a serial line.

    Parameters
    ----------
    bit_cycles
        Cycles of a bit.

    Members
    -------
    bus
        Any write sends a byte; reads return 0.
    tx
        Serial line, high when idle.

    Handshake
    ---------
    Wishbone. A write waits until the byte before it has left.

    Timing
    ------
    A byte takes 10 bits: start bit (0), data from bit 0 on, stop bit (1).

    Requirements
    ------------
    `bit_cycles` is at least 2.

    Reset and faults
    ----------------
    Reset drops the byte in transmission. No faults.
    """

    BIT_CYCLES = 4
    """Cycles of a bit in the simulated system: short, since the CPU waits for the line."""
    _FRAME_BITS = 10

    def __init__(self, bit_cycles: int = BIT_CYCLES) -> None:
        self._bit_cycles = bit_cycles
        super().__init__({"bus": In(Wishbone()), "tx": Out(1, init=1)})

    def elaborate(self, platform: object) -> Module:
        """A shift register of a frame, a counter of cycles and one of bits."""
        m = Module()
        frame = Signal(self._FRAME_BITS, init=(1 << self._FRAME_BITS) - 1)
        cycles = Signal(range(self._bit_cycles))
        bits = Signal(range(self._FRAME_BITS + 1))
        access = self.bus.cyc & self.bus.stb
        m.d.comb += [self.tx.eq(frame[0]), self.bus.ack.eq(access & (~self.bus.we | (bits == 0)))]
        with m.If(bits == 0), m.If(access & self.bus.we):
            m.d.sync += [
                frame.eq(Cat(C(0, 1), self.bus.dat_w[:8], C(1, 1))),
                bits.eq(self._FRAME_BITS),
                cycles.eq(self._bit_cycles - 1),
            ]
        with m.Elif(cycles == 0):
            m.d.sync += [frame.eq(Cat(frame[1:], C(1, 1))), bits.eq(bits - 1), cycles.eq(self._bit_cycles - 1)]
        with m.Else():
            m.d.sync += cycles.eq(cycles - 1)
        return m
