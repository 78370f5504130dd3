"""The wait board, for runs of any length: a row opens when all units it waits for have finished enough, not before."""

from pathlib import Path

import pytest
from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cat, Elaboratable, Module, ResetSignal, Signal

from intloom.hw.control.waits import ROWS, UNIT_SELECT_BITS, WaitChecker
from intloom.hw.spec.isa import COUNT_BITS
from tests.hw.formal.order import free_inputs
from tests.hw.formal.prover import prove

pytestmark = pytest.mark.slow


class BoardBench(Elaboratable):
    """A board and one pair, chosen once and for all: a row, a unit, and what that row has to wait for.

    The row's wait is written while the row is not ready and stays until the row has been taken. `fault` leaves that
    out. The unit's count is followed beside the board.
    """

    def __init__(self, fault: bool = False) -> None:
        self.fault = fault

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.board = board = WaitChecker()
        m.d.comb += list(free_inputs(board))
        row, unit = AnyConst(len(board.write_row)), AnyConst(UNIT_SELECT_BITS)
        count, wait, written = Signal(COUNT_BITS), Signal(COUNT_BITS), Signal()
        was_ready = Signal()
        ready, met = board.ready.bit_select(row, 1), board.met.bit_select(row, 1)
        m.d.sync += [was_ready.eq(ready), count.eq(count + board.done.bit_select(unit, 1))]
        here = board.write & (board.write_row == row) & (board.write_unit == unit)
        with m.If(here):
            m.d.sync += [wait.eq(board.write_wait), written.eq(1)]
        m.d.comb += [
            Assume(~ResetSignal()),
            Assume(row < ROWS),
            Assume(count != (1 << COUNT_BITS) - 1),
            Assume(~ready | written),
        ]
        if not self.fault:
            m.d.comb += Assume(~here | (~ready & ~was_ready))
        m.d.comb += Assert(~(met & was_ready) | (count >= wait))
        # What induction has to know beside that: the content of each memory.
        m.d.comb += Assert(board.counts[unit] == count)
        for number, memory in enumerate(board.waits):
            port = memory.read_port(domain="comb")
            m.d.comb += [port.addr.eq(row), Assert(~written | (unit != number) | (port.data == wait))]
        return m


class ProgressBench(Elaboratable):
    """A board and one row, chosen once and for all, whose waits are written no more.

    When the last of its units has finished enough, the row opens after `LATENCY` cycles and one for each other row.
    With `cycles` fewer it need not.
    """

    def __init__(self, cycles: int = WaitChecker.LATENCY + ROWS - 1) -> None:
        self.cycles = cycles

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.board = board = WaitChecker()
        m.d.comb += list(free_inputs(board))
        row, reached = AnyConst(len(board.write_row)), []
        for count, memory in zip(board.counts, board.waits, strict=True):
            port = memory.read_port(domain="comb")
            m.d.comb += port.addr.eq(row)
            reached.append(count >= port.data)
        # Whether the row was ready and had all its waits in each of the last cycles.
        closed = board.ready.bit_select(row, 1) & Cat(reached).all() & ~board.met.bit_select(row, 1)
        history = Signal(self.cycles - 1)
        m.d.sync += history.eq(Cat(closed, history))
        m.d.comb += [
            Assume(~ResetSignal()),
            Assume(row < ROWS),
            Assume(~board.write | (board.write_row != row)),
            Assert(~(closed & history.all())),
            Assert(board.row < ROWS),
        ]
        return m


def test_rows_open_when_their_waits_are_met(tmp_path: Path) -> None:
    """So the oldest unfinished instruction, which waits for none that is unfinished, is offered to its unit."""
    bench = ProgressBench()
    result = prove(bench, tmp_path, depth=bench.cycles + 1, induction=True, whole=True)
    assert result.holds, result.log


def test_rows_may_wait_for_all_others(tmp_path: Path) -> None:
    bench = ProgressBench(WaitChecker.LATENCY + ROWS - 2)
    assert not prove(bench, tmp_path, depth=bench.cycles + 12, whole=True).holds


def test_rows_open_only_when_their_waits_are_met(tmp_path: Path) -> None:
    result = prove(BoardBench(), tmp_path, depth=3, induction=True, whole=True)
    assert result.holds, result.log


def test_waits_that_change_unannounced_would_slip_through(tmp_path: Path) -> None:
    assert not prove(BoardBench(fault=True), tmp_path, depth=8, whole=True).holds
