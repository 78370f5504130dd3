"""One column's sums: two banks that the array fills in turn, read by the array and by the drain."""

from __future__ import annotations

from collections.abc import Iterable

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from intloom.hw.memory.bank import NO_COLLISIONS
from intloom.hw.spec.params import HardwareParams

_SMALL_STRIP = 16
"""Words of the smallest distributed RAM."""
_SLOW_DRAIN = 8
"""Cycles a pixel: so slow a drain need not begin before a strip's last tile is through."""


class ColumnSums(wiring.Component):
    """A write port, and two read ports whose data comes `LATENCY` cycles later.

    Addresses are a bank bit above a pixel number.
    Where `takes_turns`, array and drain must not read one bank in the same cycle: then a bank is a memory of its own
    with one read port, which takes half as much distributed RAM as two ports into both banks.

    Members
    -------
    read_address, read_data:
        For the array.
    drain_en, drain_address, drain_data:
        For the drain.
    write_en, write_address, write_data:
        A sum to store; a read in the same cycle gives undefined data.
    """

    LATENCY = 1

    def __init__(self, params: HardwareParams) -> None:
        self._strip = params.strip
        self._sum = signed(params.acc_bits)
        self._apart = self.takes_turns(params)
        address = params.strip.bit_length()
        super().__init__(
            {
                "read_address": In(address),
                "read_data": Out(self._sum),
                "drain_en": In(1),
                "drain_address": In(address),
                "drain_data": Out(self._sum),
                "write_en": In(1),
                "write_address": In(address),
                "write_data": In(self._sum),
            }
        )

    @staticmethod
    def takes_turns(params: HardwareParams) -> bool:
        """Whether a bank that is drained must not be read by the array."""
        return params.strip <= _SMALL_STRIP and params.cols // params.lanes >= _SLOW_DRAIN

    @staticmethod
    def model(writes: Iterable[tuple[int, int]], address: int) -> int:
        """What either port reads after these writes of addresses and sums."""
        return dict(writes).get(address, 0)

    def elaborate(self, platform: object) -> Module:
        """One memory of two ports, or two memories of one."""
        m = Module()
        if self._apart:
            self._two_banks(m)
        else:
            self._both_ports(m)
        return m

    def _both_ports(self, m: Module) -> None:
        memory = Memory(shape=self._sum, depth=2 * self._strip, init=[], attrs=NO_COLLISIONS)
        m.submodules.memory = memory
        read, drain, write = memory.read_port(), memory.read_port(), memory.write_port()
        m.d.comb += [
            read.addr.eq(self.read_address),
            self.read_data.eq(read.data),
            drain.addr.eq(self.drain_address),
            self.drain_data.eq(drain.data),
            write.en.eq(self.write_en),
            write.addr.eq(self.write_address),
            write.data.eq(self.write_data),
        ]

    def _two_banks(self, m: Module) -> None:
        """A bank is read by the drain when it asks for it, else by the array; then each picks its bank's data."""
        read_bank, drain_bank = Signal(), Signal()
        m.d.sync += [read_bank.eq(self.read_address[-1]), drain_bank.eq(self.drain_address[-1])]
        found = []
        for bank in range(2):
            memory = Memory(shape=self._sum, depth=self._strip, init=[], attrs=NO_COLLISIONS)
            m.submodules[f"bank{bank}"] = memory
            read, write = memory.read_port(), memory.write_port()
            drains = Signal(name=f"drains{bank}")
            m.d.comb += [
                drains.eq(self.drain_en & (self.drain_address[-1] == bank)),
                read.addr.eq(Mux(drains, self.drain_address, self.read_address)[:-1]),
                write.en.eq(self.write_en & (self.write_address[-1] == bank)),
                write.addr.eq(self.write_address[:-1]),
                write.data.eq(self.write_data),
            ]
            found.append(read.data)
        m.d.comb += [
            self.read_data.eq(Mux(read_bank, found[1], found[0])),
            self.drain_data.eq(Mux(drain_bank, found[1], found[0])),
        ]
