"""Table lookup: a 256-byte function of the result byte, per lane, in two sets."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from intloom.hw.mac.weights.constants_loader import CONSTANT_WRITE, ConstantKind
from intloom.hw.pipeline import output_register
from intloom.hw.spec import timing
from intloom.hw.spec.formats import TABLE_BYTES
from intloom.hw.spec.params import HardwareParams


class TableLookup(wiring.Component):
    """Maps bytes through a table or passes them; the other set may be loaded meanwhile (double buffer).

    Members
    -------
    write, write_set:
        Bytes of kind TABLE are stored in the set, in the order of result bytes 0 to 127, -128 to -1.
    valid, use, read_set, values:
        Bytes to look up or, without `use`, to pass.
    results:
        The bytes.

    Handshake
    ---------
    No back-pressure. `results` holds until the next valid values.

    Timing
    ------
    One group a cycle. From `values` to `results`: `LATENCY` = 2 cycles, with and without lookup.

    Requirements
    ------------
    A set is not written while items in flight use it.

    Reset and faults
    ----------------
    Soft reset clears the valid flags; tables survive. There are no faults.
    """

    LATENCY = timing.TABLE_LOOKUP

    def __init__(self, params: HardwareParams) -> None:
        self._lanes = params.lanes
        super().__init__(
            {
                "write": In(CONSTANT_WRITE),
                "write_set": In(1),
                "valid": In(1),
                "use": In(1),
                "read_set": In(1),
                "values": In(data.ArrayLayout(8, params.lanes)),
                "results": Out(data.ArrayLayout(8, params.lanes)),
            }
        )

    @staticmethod
    def model(value: int, table: bytes, use: bool) -> int:
        """The byte that results."""
        return table[value] if use else value

    def elaborate(self, platform: object) -> Module:
        """A memory per lane, because each lane looks up its own byte."""
        m = Module()
        valid, use = Signal(), Signal()
        results = output_register(m, self.results)
        m.d.sync += [valid.eq(self.valid), use.eq(self.use)]
        for lane in range(self._lanes):
            memory = Memory(shape=8, depth=2 * TABLE_BYTES, init=[])
            m.submodules[f"lane{lane}"] = memory
            write, read = memory.write_port(), memory.read_port()
            # As late as a lookup: bytes with and without it stay in order.
            bypass = Signal(8, name=f"bypass{lane}", reset_less=True)
            m.d.comb += [
                write.en.eq(self.write.kind == ConstantKind.TABLE),
                write.addr.eq(Cat(self.write.index, self.write_set)),
                write.data.eq(self.write.byte),
                read.en.eq(self.valid & self.use),
                read.addr.eq(Cat(self.values[lane], self.read_set)),
            ]
            with m.If(self.valid):
                m.d.sync += bypass.eq(self.values[lane])
            with m.If(valid & use):
                m.d.sync += results[lane].eq(read.data)
            with m.Elif(valid):
                m.d.sync += results[lane].eq(bypass)
        return m
