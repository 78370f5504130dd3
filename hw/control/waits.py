"""The semaphores: how far each unit has come, and whether an instruction's waits are met."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hw.spec.isa import COUNT_BITS, QUEUED_UNITS

UNITS = len(QUEUED_UNITS)
UNIT_SELECT_BITS = ceil_log2(UNITS)
ROWS = UNITS + 1
"""An instruction at the head of each queue, and END."""
END_ROW = UNITS


class WaitBoard(wiring.Component):
    """Counts finished instructions, and compares each row's waits with the counts, one pair a cycle.

    A row looks at its waits one after the other. Counts only grow while a program runs, so a wait once met stays met
    and the row goes on to its next. Rows that have something left to wait for take turns. `met` comes at most
    `TURN * rows in turn` cycles after the last needed count, if that belongs to the row's last wait.

    Members
    -------
    done
        A unit has finished an instruction.
    write, write_row, write_unit, write_wait
        A wait of the next instruction of a row of the queues.
    end_wait
        END's wait for unit `end_unit`, in the same cycle.
    ready
        The row's waits stand here. Low, the row begins anew.
    met
        All waits of the row are met.
    """

    TURN = 2

    def __init__(self) -> None:
        super().__init__(
            {
                "done": In(UNITS),
                "write": In(1),
                "write_row": In(UNIT_SELECT_BITS),
                "write_unit": In(UNIT_SELECT_BITS),
                "write_wait": In(COUNT_BITS),
                "end_unit": Out(UNIT_SELECT_BITS),
                "end_wait": In(COUNT_BITS),
                "ready": In(ROWS),
                "met": Out(ROWS),
            }
        )
        # Proofs look into these.
        self.memory = Memory(shape=COUNT_BITS, depth=UNITS * UNITS, init=[])
        self.counts = Signal(data.ArrayLayout(COUNT_BITS, UNITS))
        self.looks_at = Signal(data.ArrayLayout(UNIT_SELECT_BITS, ROWS))
        self.busy, self.row = Signal(), Signal(range(ROWS))

    def elaborate(self, platform: object) -> Module:
        """One stage chooses a row, the next compares and lets the row go on."""
        m = Module()
        busy, row = self.busy, self.row
        unit, unit_next = Signal(UNIT_SELECT_BITS), Signal(UNIT_SELECT_BITS)
        open_rows = Signal(ROWS)
        m.d.comb += open_rows.eq(self.ready & ~self.met)
        chosen = self._choose(m, open_rows, busy, row)
        with m.Switch(chosen):
            for number in range(ROWS):
                with m.Case(number):
                    m.d.comb += unit_next.eq(self.looks_at[number])
        m.d.sync += [unit.eq(unit_next), row.eq(chosen)]
        reached = Signal()
        m.d.comb += [
            self.end_unit.eq(unit),
            reached.eq(busy & (self._count(m, unit) >= self._wait(m, row, unit))),
        ]
        for number in range(ROWS):
            with m.If(~self.ready[number]):
                m.d.sync += [self.looks_at[number].eq(0), self.met[number].eq(0)]
            with m.Elif(reached & (row == number)):
                m.d.sync += [self.looks_at[number].eq(unit + 1), self.met[number].eq(unit == UNITS - 1)]
        return m

    def _choose(self, m: Module, open_rows: Signal, busy: Signal, row: Signal) -> Signal:
        """The next open row after the one at work, which has its turn again only when that is over."""
        chosen = Signal(range(ROWS))
        found = Signal()
        with m.Switch(row):
            for number in range(ROWS):
                with m.Case(number):
                    for step in reversed(range(1, ROWS + 1)):
                        other = (number + step) % ROWS
                        with m.If(open_rows[other] & (~busy if other == number else 1)):
                            m.d.comb += [chosen.eq(other), found.eq(1)]
        m.d.sync += busy.eq(found)
        return chosen

    def _count(self, m: Module, unit: Signal) -> Signal:
        """Finished instructions of the unit in this program."""
        count = Signal(COUNT_BITS)
        for number in range(UNITS):
            with m.If(self.done[number]):
                m.d.sync += self.counts[number].eq(self.counts[number] + 1)
        with m.Switch(unit):
            for number in range(UNITS):
                with m.Case(number):
                    m.d.comb += count.eq(self.counts[number])
        return count

    def _wait(self, m: Module, row: Signal, unit: Signal) -> Value:
        """The wait that the row looks at: from a memory, or END's."""
        m.submodules.memory = self.memory
        write, read = self.memory.write_port(), self.memory.read_port(domain="comb")
        wait = Signal(COUNT_BITS)
        m.d.comb += [
            write.en.eq(self.write),
            write.addr.eq(Cat(self.write_unit, self.write_row)),
            write.data.eq(self.write_wait),
            read.addr.eq(Cat(unit, row[:UNIT_SELECT_BITS])),
            wait.eq(read.data),
        ]
        with m.If(row == END_ROW):
            m.d.comb += wait.eq(self.end_wait)
        return wait
