"""The accumulators: two banks of a strip of sums for every column, filled by the array and read by the drain."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.mac.array import dot_bits
from intloom.hw.mac.sums import ColumnSums
from intloom.hw.pipeline import output_register
from intloom.hw.spec.arith import wrap
from intloom.hw.spec.params import HardwareParams


class Accumulators(wiring.Component):
    """Adds a pixel's dot products to its sums, every cycle, while another port reads finished sums.

    Sums wrap in `acc_bits`. An address is a bank bit above a pixel number. A pixel may come again
    `REVISIT` cycles later at the soonest; a drain read may come `VISIBLE` cycles after the dots, and where
    `ColumnSums.takes_turns` not before its bank's last tile is through.

    Members
    -------
    valid, first, address:
        `AHEAD` cycles before its dots: a pixel's address, and whether its sum starts from zero.
    dots:
        The dot products.
    drain_groups, drain_address:
        Bit g reads the sums of columns g*lanes and up of a pixel; at most one bit is set.
    drain_sums:
        One sum a lane, `DRAIN_LATENCY` cycles later.
    """

    AHEAD = 2
    REVISIT = 4
    VISIBLE = 2
    DRAIN_LATENCY = 3

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        self._sum = signed(params.acc_bits)
        self._groups = params.cols // params.lanes
        address_bits = params.strip.bit_length()
        super().__init__(
            {
                "valid": In(1),
                "first": In(1),
                "address": In(address_bits),
                "dots": In(data.ArrayLayout(signed(dot_bits(params.rows)), params.cols)),
                "drain_groups": In(self._groups),
                "drain_address": In(address_bits),
                "drain_sums": Out(data.ArrayLayout(self._sum, params.lanes)),
            }
        )

    @staticmethod
    def model(dots: Iterable[int], acc_bits: int) -> int:
        """A column's sum of a pixel, of its dot products with the tiles of a strip."""
        return wrap(sum(dots), acc_bits)

    def elaborate(self, platform: object) -> Module:
        """Read, hold, add, write: a stage each; the drain's request comes near, reads, then picks its group."""
        m = Module()
        valid = [self.valid, *(Signal(name=f"valid{i}") for i in range(1, 4))]
        first = [self.first, *(Signal(name=f"first{i}", reset_less=True) for i in range(1, 3))]
        address = [self.address, *(Signal(len(self.address), name=f"address{i}", reset_less=True) for i in range(1, 4))]
        for delayed in (valid, first, address):
            m.d.sync += [after.eq(before) for before, after in pairwise(delayed)]
        self._asked = Signal.like(self.drain_groups, name="asked")
        self._asked_address = Signal.like(self.drain_address, name="asked_address", reset_less=True)
        m.d.sync += [self._asked.eq(self.drain_groups), self._asked_address.eq(self.drain_address)]
        drained = [self._column(m, column, valid, first, address) for column in range(self._params.cols)]
        self._pick(m, drained)
        return m

    def _column(
        self, m: Module, column: int, valid: list[Signal], first: list[Signal], address: list[Signal]
    ) -> Signal:
        sums = ColumnSums(self._params)
        m.submodules[f"column{column}"] = sums
        held = Signal(self._sum, name=f"held{column}", reset_less=True)
        m.d.comb += [
            sums.read_address.eq(address[0]),
            sums.drain_en.eq(self._asked[column // self._params.lanes]),
            sums.drain_address.eq(self._asked_address),
        ]
        m.d.sync += held.eq(Mux(first[1], 0, sums.read_data))
        total = Signal(self._sum, name=f"total{column}", reset_less=True)
        m.d.sync += total.eq(held + self.dots[column])
        m.d.comb += [sums.write_en.eq(valid[3]), sums.write_address.eq(address[3]), sums.write_data.eq(total)]
        return sums.drain_data

    def _pick(self, m: Module, drained: list[Signal]) -> None:
        group = Signal(self._groups)
        picked = output_register(m, self.drain_sums, "picked")
        m.d.sync += group.eq(self._asked)
        for number in range(self._groups):
            with m.If(group[number]):
                for lane in range(self._params.lanes):
                    m.d.sync += picked[lane].eq(drained[number * self._params.lanes + lane])
