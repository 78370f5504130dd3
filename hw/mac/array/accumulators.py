"""Accumulators: two banks of a strip of sums per column, filled by the array and read by readout."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from amaranth.hdl import Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.mac.array.accumulator_memory import AccumulatorMemory
from intloom.hw.mac.array.mac_array import dot_bits
from intloom.hw.one_hot import one_hot_value
from intloom.hw.pipeline import output_register
from intloom.hw.spec import timing
from intloom.hw.spec.arith import wrap
from intloom.hw.spec.params import HardwareParams


class Accumulators(wiring.Component):
    """Adds a pixel's dot products to its sums every cycle while a second port reads finished sums.

    The banks alternate by strip (ping-pong). Sums wrap in `acc_bits`. An address is a bank bit above a pixel number.

    Members
    -------
    valid, first, continued, address:
        `ADDRESS_LEAD` cycles before its dots: a pixel's address, and whether its sum starts from zero, or from the sum
        of that pixel in the other bank.
    dots:
        The dot products.
    readout_groups, readout_address:
        Bit g reads the sums of columns g*lanes and up of a pixel; at most one bit is set.
    readout_sums:
        One sum per lane.

    Handshake
    ---------
    No back-pressure on either port.

    Timing
    ------
    One pixel and one readout a cycle. `valid` leads the dots by `ADDRESS_LEAD` = 2 cycles. From dots to a readout that
    returns the new sum: `WRITE_LATENCY` = 2 cycles. From a readout to its sums: `READOUT_LATENCY` = 3 cycles.

    Requirements
    ------------
    The same pixel recurs no earlier than `REVISIT` = 4 cycles later (read-modify-write hazard). With
    `single_ported_accumulators`, readout of a bank starts after its last tile.

    Reset and faults
    ----------------
    Soft reset clears the valid pipeline; sums are overwritten by the first tile of a strip. There are no faults.
    """

    ADDRESS_LEAD = 2
    REVISIT = 4
    WRITE_LATENCY = timing.ACCUMULATOR_WRITE
    READOUT_LATENCY = timing.ACCUMULATOR_READ

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        self._sum = signed(params.acc_bits)
        self._groups = params.cols // params.lanes
        address_bits = params.strip.bit_length()
        super().__init__(
            {
                "valid": In(1),
                "first": In(1),
                "continued": In(1),
                "address": In(address_bits),
                "dots": In(data.ArrayLayout(signed(dot_bits(params.rows)), params.cols)),
                "readout_groups": In(self._groups),
                "readout_address": In(address_bits),
                "readout_sums": Out(data.ArrayLayout(self._sum, params.lanes)),
            }
        )

    @staticmethod
    def model(dots: Iterable[int], acc_bits: int) -> int:
        """A column's sum for a pixel over the tiles of a strip."""
        return wrap(sum(dots), acc_bits)

    def elaborate(self, platform: object) -> Module:
        """Read, operand register, add, write, one stage each; readout: request register, read, group selection."""
        m = Module()
        valid = [self.valid, *(Signal(name=f"valid{i}") for i in range(1, 4))]
        first = [self.first, *(Signal(name=f"first{i}", reset_less=True) for i in range(1, 3))]
        address = [self.address, *(Signal(len(self.address), name=f"address{i}", reset_less=True) for i in range(1, 4))]
        for stages in (valid, first, address):
            m.d.sync += [after.eq(before) for before, after in pairwise(stages)]
        # A register before the memory: its address fans out to the banks.
        self._readout_groups = Signal.like(self.readout_groups, name="readout_request")
        readout_address = Signal.like(self.readout_address, name="readout_request_address", reset_less=True)
        readout_en = Signal()
        m.d.sync += [
            self._readout_groups.eq(self.readout_groups),
            readout_en.eq(self.readout_groups.any()),
            readout_address.eq(self.readout_address),
        ]
        m.submodules.sums = memory = AccumulatorMemory(self._params)
        m.d.comb += [
            memory.read_address.eq(address[0] ^ (self.continued << len(self.address) - 1)),
            memory.readout_en.eq(readout_en),
            memory.readout_address.eq(readout_address),
            memory.write_en.eq(valid[3]),
            memory.write_address.eq(address[3]),
        ]
        for column in range(self._params.cols):
            operand = Signal(self._sum, name=f"operand{column}", reset_less=True)
            total = Signal(self._sum, name=f"total{column}", reset_less=True)
            # Between RAM and adder: both do not share a cycle. The first tile of a strip ignores what is stored, so no
            # cycles are spent on clearing a bank.
            m.d.sync += operand.eq(Mux(first[1], 0, memory.read_data[column]))
            m.d.sync += total.eq(operand + self.dots[column])
            m.d.comb += memory.write_data[column].eq(total)
        self._select_group(m, [memory.readout_data[column] for column in range(self._params.cols)])
        return m

    def _select_group(self, m: Module, readouts: Sequence[Value]) -> None:
        group = Signal(self._groups)
        selected = output_register(m, self.readout_sums, "selected")
        m.d.sync += group.eq(self._readout_groups)
        for lane in range(self._params.lanes):
            with m.If(group.any()):
                m.d.sync += selected[lane].eq(one_hot_value(group, readouts[lane :: self._params.lanes]))
