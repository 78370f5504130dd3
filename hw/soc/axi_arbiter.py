"""Arbiter of AXI4 masters on one memory port."""

from typing import Any

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from intloom.hw.bus.axi4 import CHANNELS, Axi4, channel_layouts
from intloom.hw.spec.params import HardwareParams


def memory_layouts(params: HardwareParams, masters: int) -> dict[str, data.StructLayout]:
    """Payload of each channel of the memory port: its identifiers hold the number of a master."""
    bits = bits_for(masters - 1)
    return {
        channel: data.StructLayout({name: bits if name == "id" else field.shape for name, field in layout})
        for channel, layout in channel_layouts(params.axi_addr_bits, params.axi_data_bits).items()
    }


class AxiArbiter(wiring.Component):
    """Connects AXI4 masters to one slave, and gives each burst its master's number as identifier.

    Reads and writes are arbitrated separately. When several masters request, the next one after the one that was served
    last is granted.

    Parameters
    ----------
    params
        The accelerator's parameters: address width and width of a beat.
    count
        Number of masters, at least 2.

    Members
    -------
    masters
        The masters. Their identifiers are ignored; responses return identifier 0.
    memory
        The slave.

    Handshake
    ---------
    AXI4. A grant stays until the address is taken, so requests are stable. The next write address is granted after
    the last write beat of the burst before it.

    Timing
    ------
    All channels pass in the same cycle. Write bursts are at least 1 cycle apart.

    Requirements
    ------------
    The slave returns the identifier of each burst and does not interleave bursts of one identifier.

    Reset and faults
    ----------------
    Reset forgets the burst in progress; masters and slave must be reset with it. Error responses pass unchanged.
    """

    def __init__(self, params: HardwareParams, count: int = 2) -> None:
        self._count = count
        axi = Axi4(params.axi_addr_bits, params.axi_data_bits)
        memory = {name: CHANNELS[name](stream.Signature(of)) for name, of in memory_layouts(params, count).items()}
        super().__init__({"masters": In(axi).array(count), "memory": Out(wiring.Signature(memory))})

    def elaborate(self, platform: object) -> Module:
        """Multiplexers on the request channels, demultiplexers by identifier on the response channels."""
        m = Module()
        write_busy = Signal()
        write_owner = Signal(range(self._count))
        self._request(m, "ar", Signal(name="ar_blocked"))
        granted = self._request(m, "aw", write_busy)
        with m.If(self.memory.aw.valid & self.memory.aw.ready):
            m.d.sync += [write_busy.eq(1), write_owner.eq(granted)]
        owner: Any = Array([master.w for master in self.masters])[write_owner]
        m.d.comb += self.memory.w.valid.eq(write_busy & owner.valid)
        for number, master in enumerate(self.masters):
            m.d.comb += master.w.ready.eq(write_busy & (write_owner == number) & self.memory.w.ready)
            with m.If(write_owner == number):
                m.d.comb += self.memory.w.payload.eq(master.w.payload)
        with m.If(self.memory.w.valid & self.memory.w.ready & self.memory.w.payload.last):
            m.d.sync += write_busy.eq(0)
        for channel in ("r", "b"):
            self._respond(m, channel)
        return m

    def _request(self, m: Module, channel: str, blocked: Signal) -> Signal:
        """Connect an address channel; returns the number of the granted master."""
        masters = [getattr(master, channel) for master in self.masters]
        memory: stream.Interface = getattr(self.memory, channel)
        numbers = range(self._count)
        granted, kept, last, chosen = (
            Signal(numbers, name=f"{channel}_{n}") for n in ("granted", "kept", "last", "chosen")
        )
        locked = Signal(name=f"{channel}_locked")
        with m.Switch(last):
            for served in numbers:
                with m.Case(served):
                    # The last assignment counts: that of the first master after `served`.
                    for number in ((served - step) % self._count for step in numbers):
                        with m.If(masters[number].valid):
                            m.d.comb += chosen.eq(number)
        m.d.comb += granted.eq(Mux(locked, kept, chosen))
        for number, master in enumerate(masters):
            m.d.comb += master.ready.eq((granted == number) & memory.ready & ~blocked)
            with m.If(granted == number):
                m.d.comb += memory.valid.eq(master.valid & ~blocked)
                m.d.comb += [memory.payload[name].eq(master.payload[name]) for name, _ in master.payload.shape()]
        m.d.comb += memory.payload.id.eq(granted)
        with m.If(memory.valid):
            m.d.sync += [locked.eq(~memory.ready), kept.eq(granted)]
            with m.If(memory.ready):
                m.d.sync += last.eq(granted)
        return granted

    def _respond(self, m: Module, channel: str) -> None:
        """Connect a response channel to the master that its identifier names."""
        memory: stream.Interface = getattr(self.memory, channel)
        for number, master in enumerate(getattr(master, channel) for master in self.masters):
            chosen = memory.payload.id == number
            m.d.comb += master.valid.eq(memory.valid & chosen)
            m.d.comb += [master.payload[name].eq(memory.payload[name]) for name, _ in master.payload.shape()]
            m.d.comb += master.payload.id.eq(0)
            with m.If(chosen):
                m.d.comb += memory.ready.eq(master.ready)
