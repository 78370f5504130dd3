"""Sums of all columns: two banks, one write port, and read ports for the array and for readout."""

from collections.abc import Iterable, Sequence

from amaranth.hdl import Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from intloom.hw.spec.params import HardwareParams
from intloom.hw.yosys_attributes import IN_LUTS, NO_COLLISIONS


class AccumulatorMemory(wiring.Component):
    """Memory of the columns' sums, one word for each pixel: the columns share addresses and enables.

    Addresses are a bank bit above a pixel number. With `single_ported_accumulators`, each bank is a memory with one
    read port, shared by array and readout; this takes half the distributed RAM of two read ports into both banks.

    Members
    -------
    read_address, read_data:
        For the array.
    readout_en, readout_address, readout_data:
        For readout.
    write_en, write_address, write_data:
        Sums to store.

    Handshake
    ---------
    None: every access is accepted.

    Timing
    ------
    One write and two reads a cycle. From a read address to its data: `LATENCY` = 1 cycle.

    Requirements
    ------------
    A read in the cycle of a write to the same address returns undefined data. With `single_ported_accumulators`, array
    and readout do not read the same bank in the same cycle; readout has priority.

    Reset and faults
    ----------------
    Memory contents are not reset. There are no faults.
    """

    LATENCY = 1

    def __init__(self, params: HardwareParams) -> None:
        self._strip = params.strip
        self._sums = data.ArrayLayout(signed(params.acc_bits), params.cols)
        self._surplus = params.accumulator_surplus
        self._two_memories = params.single_ported_accumulators
        address = params.strip.bit_length()
        super().__init__(
            {
                "read_address": In(address),
                "read_data": Out(self._sums),
                "readout_en": In(1),
                "readout_address": In(address),
                "readout_data": Out(self._sums),
                "write_en": In(1),
                "write_address": In(address),
                "write_data": In(self._sums),
            }
        )

    @staticmethod
    def model(writes: Iterable[tuple[int, Sequence[int]]], address: int, columns: int) -> Sequence[int]:
        """What either port reads after these writes of addresses and sums."""
        return dict(writes).get(address, [0] * columns)

    def elaborate(self, platform: object) -> Module:
        """A memory with two read ports, or two memories with one."""
        m = Module()
        if self._two_memories:
            self._memory_per_bank(m)
        else:
            self._two_read_ports(m)
        return m

    def _two_read_ports(self, m: Module) -> None:
        """Bits beyond whole blocks of RAM, if they are few, are a memory of their own, in look-up tables."""
        at = self._sums.size - self._surplus
        read_data, readout_data, write_data = map(Value.cast, (self.read_data, self.readout_data, self.write_data))
        parts = [("memory", slice(at), NO_COLLISIONS)]
        parts += [("surplus", slice(at, None), NO_COLLISIONS | IN_LUTS)] * bool(self._surplus)
        for name, bits, attributes in parts:
            memory = Memory(shape=len(write_data[bits]), depth=2 * self._strip, init=[], attrs=attributes)
            m.submodules[name] = memory
            read, readout, write = memory.read_port(), memory.read_port(), memory.write_port()
            m.d.comb += [
                read.addr.eq(self.read_address),
                read_data[bits].eq(read.data),
                readout.addr.eq(self.readout_address),
                readout_data[bits].eq(readout.data),
                write.en.eq(self.write_en),
                write.addr.eq(self.write_address),
                write.data.eq(write_data[bits]),
            ]

    def _memory_per_bank(self, m: Module) -> None:
        """Readout addresses a bank if it reads it, else the array does; each selects its bank's data."""
        read_bank, readout_bank = Signal(), Signal()
        m.d.sync += [read_bank.eq(self.read_address[-1]), readout_bank.eq(self.readout_address[-1])]
        read_data = []
        for bank in range(2):
            memory = Memory(shape=self._sums.size, depth=self._strip, init=[], attrs=NO_COLLISIONS)
            m.submodules[f"bank{bank}"] = memory
            read, write = memory.read_port(), memory.write_port()
            readout_reads = Signal(name=f"readout_reads{bank}")
            m.d.comb += [
                readout_reads.eq(self.readout_en & (self.readout_address[-1] == bank)),
                read.addr.eq(Mux(readout_reads, self.readout_address, self.read_address)[:-1]),
                write.en.eq(self.write_en & (self.write_address[-1] == bank)),
                write.addr.eq(self.write_address[:-1]),
                write.data.eq(self.write_data),
            ]
            read_data.append(read.data)
        m.d.comb += [
            self.read_data.eq(Mux(read_bank, read_data[1], read_data[0])),
            self.readout_data.eq(Mux(readout_bank, read_data[1], read_data[0])),
        ]
