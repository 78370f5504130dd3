"""Bridge from Wishbone to the accelerator's AXI4-Lite port."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.bus.axi4_lite import Axi4Lite
from intloom.hw.soc.wishbone import Wishbone
from intloom.hw.spec.regs import ADDRESS_BITS


class RegisterBridge(wiring.Component):
    """Executes single Wishbone accesses on an AXI4-Lite slave.

    Members
    -------
    bus
        The CPU's access; bits above the register address are ignored.
    registers
        AXI4-Lite master.
    error
        The response was an error, in the cycle of `ack`.

    Handshake
    ---------
    Wishbone and AXI4-Lite. The access ends with the slave's response.

    Timing
    ------
    From the access's first cycle to AXI address and data: the same cycle. The response passes in the same cycle.

    Requirements
    ------------
    The master keeps the access until `ack`.

    Reset and faults
    ----------------
    Reset ends the access in progress; the slave must be reset with it. An error response
    ends the access like a good one and gives `error`.
    """

    def __init__(self) -> None:
        super().__init__({"bus": In(Wishbone()), "registers": Out(Axi4Lite(ADDRESS_BITS).flip()), "error": Out(1)})

    def elaborate(self, platform: object) -> Module:
        """Each request channel is taken once per access."""
        m = Module()
        bus, registers = self.bus, self.registers
        access = bus.cyc & bus.stb
        m.d.comb += [registers.w.payload.data.eq(bus.dat_w), registers.w.payload.strb.eq(bus.sel)]
        m.d.comb += [bus.dat_r.eq(registers.r.payload.data), registers.b.ready.eq(1), registers.r.ready.eq(1)]
        for name, wanted in (("aw", bus.we), ("w", bus.we), ("ar", ~bus.we)):
            channel = getattr(registers, name)
            taken = Signal(name=f"{name}_taken")
            m.d.comb += channel.valid.eq(access & wanted & ~taken)
            m.d.sync += taken.eq((taken | (channel.valid & channel.ready)) & ~bus.ack)
            if name != "w":
                m.d.comb += channel.payload.addr.eq(bus.adr << 2)
        for channel in (registers.b, registers.r):
            with m.If(channel.valid):
                m.d.comb += [bus.ack.eq(1), self.error.eq(channel.payload.resp[1])]
        return m
