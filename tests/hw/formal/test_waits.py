"""The wait board, for runs of any length: no row opens before all units it waits for have finished enough."""

from __future__ import annotations

from pathlib import Path

import pytest
from amaranth.hdl import Assert, Assume, Module, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from hw.control.waits import ROWS, UNIT_SELECT_BITS, UNITS, WaitBoard
from hw.spec.isa import COUNT_BITS
from tests.hw.formal.prove import holds_always, model


class BoardContract(wiring.Component):
    """A board and one pair, chosen once and for all: a row, a unit, and what that row has to wait for.

    The row's wait is written while the row is not ready and stays until the row has been taken. `fault` leaves that
    out. The unit's count is followed beside the board.
    """

    def __init__(self, fault: bool = False) -> None:
        self._fault = fault
        super().__init__(
            {
                "done": In(UNITS),
                "write": In(1),
                "write_row": In(range(ROWS)),
                "write_unit": In(UNIT_SELECT_BITS),
                "write_wait": In(COUNT_BITS),
                "ready": In(ROWS),
                "row": In(range(ROWS)),
                "unit": In(UNIT_SELECT_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = WaitBoard()
        for name in ("done", "write", "write_row", "write_unit", "write_wait", "ready"):
            m.d.comb += getattr(dut, name).eq(getattr(self, name))
        row, unit = self.row, self.unit
        started, row_before, unit_before = Signal(), Signal(range(ROWS)), Signal(UNIT_SELECT_BITS)
        count, wait, written = Signal(COUNT_BITS), Signal(COUNT_BITS), Signal()
        was_ready = Signal()
        ready, met = self.ready.bit_select(row, 1), dut.met.bit_select(row, 1)
        m.d.sync += [started.eq(1), row_before.eq(row), unit_before.eq(unit), was_ready.eq(ready)]
        m.d.sync += count.eq(count + self.done.bit_select(unit, 1))
        here = self.write & (self.write_row == row) & (self.write_unit == unit)
        with m.If(here):
            m.d.sync += [wait.eq(self.write_wait), written.eq(1)]
        m.d.comb += [
            Assume(~ResetSignal()),
            Assume(~started | ((row == row_before) & (unit == unit_before))),
            Assume(row < ROWS),
            Assume(count != (1 << COUNT_BITS) - 1),
            Assume(~ready | written),
        ]
        if not self._fault:
            m.d.comb += Assume(~here | (~ready & ~was_ready))
        m.d.comb += Assert(~(met & was_ready) | (count >= wait))
        # What induction has to know beside that: what stands where.
        m.d.comb += Assert(dut.counts[unit] == count)
        for number, memory in enumerate(dut.waits):
            port = memory.read_port(domain="comb")
            m.d.comb += [port.addr.eq(row), Assert(~written | (unit != number) | (port.data == wait))]
        return m


def prove(contract: BoardContract, folder: Path) -> bool:
    """Whether the board keeps the contract in runs of any length."""
    names = ("done", "write", "write_row", "write_unit", "write_wait", "ready", "row", "unit")
    return holds_always(model(contract, [getattr(contract, name) for name in names], folder), 6, folder)


@pytest.mark.slow
def test_rows_open_only_when_their_waits_are_met(tmp_path: Path) -> None:
    assert prove(BoardContract(), tmp_path)


@pytest.mark.slow
def test_waits_that_change_unannounced_would_slip_through(tmp_path: Path) -> None:
    assert not prove(BoardContract(fault=True), tmp_path)
