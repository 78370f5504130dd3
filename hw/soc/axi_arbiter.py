"""Arbiter of two AXI4 masters on one memory port."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.bus.axi4 import Axi4
from intloom.hw.spec.params import HardwareParams


class AxiArbiter(wiring.Component):
    """Connects two AXI4 masters to one slave, and gives each burst its master's number as identifier.

    Reads and writes are arbitrated separately. When both masters request, the one that was not served last is granted.

    Parameters
    ----------
    params
        The accelerator's parameters: address width and width of a beat.

    Members
    -------
    first, second
        The masters, numbers 0 and 1. Their identifiers are ignored; responses return identifier 0.
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

    def __init__(self, params: HardwareParams) -> None:
        axi = Axi4(params.axi_addr_bits, params.axi_data_bits)
        super().__init__({"first": In(axi), "second": In(axi), "memory": Out(axi)})

    def elaborate(self, platform: object) -> Module:
        """Multiplexers on the request channels, demultiplexers by identifier on the response channels."""
        m = Module()
        write_busy = Signal()
        write_owner = Signal()
        self._request(m, "ar", Signal(name="ar_blocked"))
        granted = self._request(m, "aw", write_busy)
        with m.If(self.memory.aw.valid & self.memory.aw.ready):
            m.d.sync += [write_busy.eq(1), write_owner.eq(granted)]
        first, second = self.first.w, self.second.w
        m.d.comb += [
            self.memory.w.valid.eq(write_busy & Mux(write_owner, second.valid, first.valid)),
            self.memory.w.payload.eq(Mux(write_owner, Value.cast(second.payload), Value.cast(first.payload))),
        ]
        for number, master in enumerate((self.first, self.second)):
            m.d.comb += master.w.ready.eq(write_busy & (write_owner == number) & self.memory.w.ready)
        with m.If(self.memory.w.valid & self.memory.w.ready & self.memory.w.payload.last):
            m.d.sync += write_busy.eq(0)
        for channel in ("r", "b"):
            self._respond(m, channel)
        return m

    def _request(self, m: Module, channel: str, blocked: Signal) -> Signal:
        """Connect an address channel; returns the number of the granted master."""
        masters = [getattr(self.first, channel), getattr(self.second, channel)]
        memory: stream.Interface = getattr(self.memory, channel)
        granted, kept, last, locked = (Signal(name=f"{channel}_{n}") for n in ("granted", "kept", "last", "locked"))
        chosen = Mux(last, masters[1].valid & ~masters[0].valid, masters[1].valid)
        m.d.comb += [
            granted.eq(Mux(locked, kept, chosen)),
            memory.valid.eq(Mux(granted, masters[1].valid, masters[0].valid) & ~blocked),
            memory.payload.eq(Mux(granted, Value.cast(masters[1].payload), Value.cast(masters[0].payload))),
            memory.payload.id.eq(granted),
        ]
        for number, master in enumerate(masters):
            m.d.comb += master.ready.eq((granted == number) & memory.ready & ~blocked)
        with m.If(memory.valid):
            m.d.sync += [locked.eq(~memory.ready), kept.eq(granted)]
            with m.If(memory.ready):
                m.d.sync += last.eq(granted)
        return granted

    def _respond(self, m: Module, channel: str) -> None:
        """Connect a response channel to the master that its identifier names."""
        memory: stream.Interface = getattr(self.memory, channel)
        masters = [getattr(self.first, channel), getattr(self.second, channel)]
        m.d.comb += memory.ready.eq(Mux(memory.payload.id, masters[1].ready, masters[0].ready))
        for number, master in enumerate(masters):
            m.d.comb += [
                master.valid.eq(memory.valid & (memory.payload.id == number)),
                master.payload.eq(Value.cast(memory.payload)),
                master.payload.id.eq(0),
            ]
