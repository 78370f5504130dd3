"""The vector unit's 256-byte lookup table."""

from amaranth.hdl import Module, Mux, Signal, unsigned
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from intloom.hw.pipeline import output_register
from intloom.hw.spec.formats import TABLE_BYTES
from intloom.hw.spec.params import HardwareParams


class ByteTable(wiring.Component):
    """Maps each byte of a slice through the table, or passes the slice unchanged.

    Two lanes share one copy of the table, because a block memory has two ports. Writes use the first lane's port.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    write_en, write_index, write_byte
        Write a byte of the table.
    use
        Look up instead of passing.
    valid, part
        A slice.
    result_valid, result
        The mapped slice.

    Handshake
    ---------
    No back-pressure: a slice is taken in every cycle with `valid`.

    Timing
    ------
    One slice a cycle. From `valid` to `result_valid`: `LATENCY` = 2 cycles, with and without lookup.

    Requirements
    ------------
    No slice is in flight while the table is written. `use` is stable while slices are in flight.

    Reset and faults
    ----------------
    Soft reset clears the valid flags; the table keeps its contents. There are no faults.
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
        """The slice on `result`."""
        return bytes(table[byte] for byte in part) if use else part

    def elaborate(self, platform: object) -> Module:
        """One memory per two lanes, and a bypass."""
        m = Module()
        middle = Signal()
        plain = Signal(8 * self._lanes, reset_less=True)
        found, result = Signal(8 * self._lanes), output_register(m, self.result)
        m.d.sync += [middle.eq(self.valid), self.result_valid.eq(middle)]
        with m.If(self.valid):
            m.d.sync += plain.eq(self.part)
        # `found` is the memory's own register: this one cuts its access time from the assembler's rotation.
        with m.If(middle):
            m.d.sync += result.eq(Mux(self.use, found, plain))
        for first in range(0, self._lanes, 2):
            self._look_up(m, first, found)
        return m

    def _look_up(self, m: Module, first: int, found: Signal) -> None:
        memory = Memory(shape=unsigned(8), depth=TABLE_BYTES, init=[])
        m.submodules[f"memory{first}"] = memory
        write = memory.write_port()
        # One address for the write port and the first read port: Yosys then maps both to one block memory port.
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
