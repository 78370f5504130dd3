"""The vector unit's 256-byte table: a byte loaded a cycle, a lookup for every byte of a slice a cycle."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal, unsigned
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from intloom.hw.pipeline import output_register
from intloom.hw.spec.params import TABLE_BYTES, HardwareParams


class ByteTable(wiring.Component):
    """Maps each byte of a slice through the table, or leaves it as it is; `LATENCY` cycles.

    Two lanes share a copy of the table, for block memories have two ports; loading takes the first lane's.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    write_en, write_index, write_byte
        Load a byte of the table; nothing may be under way.
    use
        Look up; must hold while slices are under way.
    valid, part
        A slice.
    result_valid, result
        The mapped slice.
    """

    LATENCY = 2

    def __init__(self, params: HardwareParams) -> None:
        self._lanes = params.vector_lanes
        super().__init__(
            {
                "write_en": In(1),
                "write_index": In(range(TABLE_BYTES)),
                "write_byte": In(8),
                "use": In(1),
                "valid": In(1),
                "part": In(8 * self._lanes),
                "result_valid": Out(1),
                "result": Out(8 * self._lanes),
            }
        )

    @staticmethod
    def model(part: bytes, table: bytes, use: bool) -> bytes:
        """What `result` is."""
        return bytes(table[byte] for byte in part) if use else part

    def elaborate(self, platform: object) -> Module:
        """A memory for two lanes, and a way past it."""
        m = Module()
        middle = Signal()
        plain = Signal(8 * self._lanes, reset_less=True)
        found, result = Signal(8 * self._lanes), output_register(m, self.result)
        m.d.sync += [middle.eq(self.valid), self.result_valid.eq(middle)]
        with m.If(self.valid):
            m.d.sync += plain.eq(self.part)
        with m.If(middle):
            m.d.sync += result.eq(Mux(self.use, found, plain))
        for first in range(0, self._lanes, 2):
            self._look_up(m, first, found)
        return m

    def _look_up(self, m: Module, first: int, found: Signal) -> None:
        memory = Memory(shape=unsigned(8), depth=TABLE_BYTES, init=[])
        m.submodules[f"memory{first}"] = memory
        write = memory.write_port()
        # The write port and the first read port have one address, so that they are one port of a block memory.
        shared = Signal(8, name=f"shared{first}")
        m.d.comb += [
            shared.eq(Mux(self.write_en, self.write_index, self.part.word_select(first, 8))),
            write.en.eq(self.write_en),
            write.addr.eq(shared),
            write.data.eq(self.write_byte),
        ]
        for lane in range(first, min(first + 2, self._lanes)):
            read = memory.read_port()
            m.d.comb += [
                read.addr.eq(shared if lane == first else self.part.word_select(lane, 8)),
                read.en.eq(self.valid & ~self.write_en),
                found.word_select(lane, 8).eq(read.data),
            ]
