"""Epilogue: sums to bytes through requantizers, lookup table and residual adder."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from intloom.hw.mac.array.accumulators import Accumulators
from intloom.hw.mac.epilogue.channel_store import ChannelStore
from intloom.hw.mac.epilogue.requantizer import RequantizerLane
from intloom.hw.mac.epilogue.residual_adder import ResidualAdder
from intloom.hw.mac.epilogue.table_lookup import TableLookup
from intloom.hw.mac.weights.constants_loader import CONSTANT_WRITE
from intloom.hw.ports import READ_LATENCY
from intloom.hw.spec.arith import SHIFT_BITS, Affine, RoundingMode, Scale, wrap
from intloom.hw.spec.params import HardwareParams

TAG = data.StructLayout({"zp_out": signed(8), "use_table": 1, "table_set": 1, "residual": 1})
"""Constants of an item's instruction, which accompany it."""


class Epilogue(wiring.Component):
    """Turns items, groups of `lanes` sums, into result bytes in a pipeline that never stalls.

    Stages: accumulator readout, `RequantizerLane` per lane, `TableLookup`, and for items with residual `ResidualAdder`.

    Members
    -------
    write, write_table_set, write_channel_set:
        Constants to store.
    valid, tag, group, channel_set:
        An item.
    sums:
        Its sums, from the accumulators.
    corrections:
        What to subtract from them.
    activate, shift, even:
        To the residual adder.
    residual_arrived, residual:
        Residual bytes.
    result_valid, results:
        The result bytes.

    Handshake
    ---------
    No back-pressure. The issuing logic takes a result FIFO credit for each item.

    Timing
    ------
    One item a cycle. From an item to its result: `LATENCY` = 17 cycles (3 readout, 12 requantize, 2 table), with
    residual `RESIDUAL_LATENCY` = 24. Sums come `Accumulators.READOUT_LATENCY` = 3 cycles, residual bytes `READ_LATENCY`
    = 5 cycles after the item, corrections `ChannelStore.CORRECTION_STAGE` = 2 cycles after it.

    Requirements
    ------------
    Items with and without residual are never in flight together: their latencies differ, and results must stay in
    order. A constant set is not written while an item in flight uses it.

    Reset and faults
    ----------------
    Soft reset clears the valid pipeline; stored constants survive. There are no faults.
    """

    LOOKUP_STAGE = Accumulators.READOUT_LATENCY + RequantizerLane.LATENCY
    LATENCY = LOOKUP_STAGE + TableLookup.LATENCY
    RESIDUAL_LATENCY = LATENCY + ResidualAdder.LATENCY
    # Residual bytes arrive READ_LATENCY after their item and wait until its result: no more groups than the difference.
    _RESIDUAL_FIFO_DEPTH = 1 << ceil_log2(LATENCY - READ_LATENCY)

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        lanes = params.lanes
        super().__init__(
            {
                "write": In(CONSTANT_WRITE),
                "write_table_set": In(1),
                "write_channel_set": In(1),
                "valid": In(1),
                "tag": In(TAG),
                "group": In(range(params.cols // lanes)),
                "channel_set": In(1),
                "sums": In(data.ArrayLayout(signed(params.acc_bits), lanes)),
                "corrections": In(data.ArrayLayout(signed(params.acc_bits), lanes)),
                "activate": In(1),
                "shift": In(SHIFT_BITS),
                "even": In(1),
                "residual_arrived": In(1),
                "residual": In(data.ArrayLayout(8, lanes)),
                "result_valid": Out(1),
                "results": Out(data.ArrayLayout(8, lanes)),
            }
        )

    @staticmethod
    def model(
        total: int,
        channel: tuple[int, Scale],
        zero_point: int,
        match: RoundingMode,
        table: bytes | None = None,
        residual: tuple[int, Affine] | None = None,
    ) -> int:
        """The byte from a sum: channel bias and scale, then a table, then a residual byte and its affine operation."""
        value = RequantizerLane.model(total, *channel, zero_point, match) & 0xFF
        if table is not None:
            value = TableLookup.model(value, table, use=True)
        if residual is not None:
            operand, affine = residual
            value = ResidualAdder.model(wrap(value, 8), wrap(operand, 8), affine) & 0xFF
        return value

    def elaborate(self, platform: object) -> Module:
        """A pipeline of valid bits and tags beside the data."""
        m = Module()
        valid, tag = [self.valid], [self.tag]
        for number in range(1, self.LATENCY + 1):
            valid.append(Signal(name=f"valid{number}"))
            tag.append(Signal(TAG, name=f"tag{number}", reset_less=True))
            m.d.sync += [valid[-1].eq(valid[-2]), tag[-1].eq(tag[-2])]
        values = self._requantize(m, valid, tag)
        m.submodules.table = table = TableLookup(self._params)
        lookup = tag[self.LOOKUP_STAGE]
        m.d.comb += [
            table.write.eq(self.write),
            table.write_set.eq(self.write_table_set),
            table.valid.eq(valid[self.LOOKUP_STAGE]),
            table.use.eq(lookup.use_table),
            table.read_set.eq(lookup.table_set),
            table.values.eq(values),
        ]
        self._add(m, valid, tag, table.results)
        return m

    def _requantize(self, m: Module, valid: list[Signal], tag: list[Signal]) -> Signal:
        m.submodules.channels = channels = ChannelStore(self._params)
        m.d.comb += [
            channels.write.eq(self.write),
            channels.write_set.eq(self.write_channel_set),
            channels.read.eq(self.valid),
            channels.read_set.eq(self.channel_set),
            channels.group.eq(self.group),
            channels.corrections.eq(self.corrections),
        ]
        first = Accumulators.READOUT_LATENCY
        values = Signal(data.ArrayLayout(8, self._params.lanes))
        for number in range(self._params.lanes):
            lane = RequantizerLane(self._params)
            m.submodules[f"requantizer{number}"] = lane
            m.d.comb += [
                lane.enable.eq(Cat(valid[first : first + lane.LATENCY])),
                lane.acc.eq(self.sums[number]),
                lane.bias.eq(channels.bias[number]),
                lane.mantissa.eq(channels.mantissa[number]),
                lane.exponent.eq(channels.exponent[number]),
                lane.zero_point.eq(tag[first + lane.ZERO_POINT_STAGE].zp_out),
                values[number].eq(lane.result),
            ]
        return values

    def _add(self, m: Module, valid: list[Signal], tag: list[Signal], results: Signal) -> None:
        m.submodules.residual_adder = adder = ResidualAdder(self._params, self._RESIDUAL_FIFO_DEPTH)
        last = self.LATENCY
        m.d.comb += [
            adder.write.eq(self.write),
            adder.activate.eq(self.activate),
            adder.shift.eq(self.shift),
            adder.even.eq(self.even),
            adder.arrived.eq(self.residual_arrived),
            adder.operands.eq(self.residual),
            adder.result_next.eq(valid[last - 1] & tag[last - 1].residual),
            adder.valid.eq(valid[last] & tag[last].residual),
            adder.results.eq(results),
            self.result_valid.eq((valid[last] & ~tag[last].residual) | adder.sums_valid),
            # No arbitration: items with and without residual are never in flight together.
            self.results.eq(Mux(adder.sums_valid, adder.sums, results)),
        ]
