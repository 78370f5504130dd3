"""Wait checks: completion counters of the units, and whether an instruction's waits are met."""

from collections.abc import Sequence

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from intloom.hw.spec.isa import COUNT_BITS, QUEUED_UNITS

UNITS = len(QUEUED_UNITS)
UNIT_SELECT_BITS = ceil_log2(UNITS)
ROWS = UNITS + 1
"""The instruction at the head of each queue, and END."""
END_ROW = UNITS


class WaitChecker(wiring.Component):
    """Counts finished instructions per unit and compares each row's waits with the counts.

    A row holds the waits of one instruction: per unit, how many instructions must have finished. One comparator per
    unit serves all rows, round-robin over the rows that are ready and not yet met. Counts never decrease while a
    program runs, so a row that is met stays met.

    Members
    -------
    done
        Per unit: it finished an instruction.
    write, write_row, write_unit, write_wait
        Write one wait: row `write_row` waits until unit `write_unit` has finished `write_wait` instructions.
    ready
        Per row: all its waits have been written.
    met
        Per row: all its waits are met.

    Handshake
    ---------
    `done` is a pulse. `met` of a row stays high until its `ready` falls; it is low 1 cycle after that.

    Timing
    ------
    From the last needed `done` to `met`: `LATENCY` = 3 cycles, plus 1 cycle per other row that is ready and not met.

    Requirements
    ------------
    `ready` of a row rises only after the last of its waits was written, and falls before the next instruction's waits
    are written.

    Reset and faults
    ----------------
    Reset clears the counts and `met`. The memory of waits has no reset. No faults.
    """

    LATENCY = 3

    def __init__(self) -> None:
        super().__init__(
            {
                "done": In(UNITS),
                "write": In(1),
                "write_row": In(range(ROWS)),
                "write_unit": In(UNIT_SELECT_BITS),
                "write_wait": In(COUNT_BITS),
                "ready": In(ROWS),
                "met": Out(ROWS),
            }
        )
        # Attributes, because the proof of tests/hw/formal reads them.
        self.waits = [Memory(shape=COUNT_BITS, depth=ROWS, init=[]) for _ in range(UNITS)]
        self.counts = Signal(data.ArrayLayout(COUNT_BITS, UNITS))
        self.row = Signal(range(ROWS))

    @staticmethod
    def model(counts: Sequence[int], waits: Sequence[int]) -> bool:
        """Whether every unit has finished as many instructions as the row waits for."""
        return all(count >= wait for count, wait in zip(counts, waits, strict=True))

    def elaborate(self, platform: object) -> Module:
        """Select a row; compare it in the next cycle; then set `met`, unless `ready` fell meanwhile."""
        m = Module()
        row, open_rows, reached = self.row, Signal(ROWS), Signal(UNITS)
        m.d.comb += open_rows.eq(self.ready & ~self.met)
        with m.Switch(row):
            for number in range(ROWS):
                with m.Case(number):
                    for step in reversed(range(1, ROWS)):
                        other = (number + step) % ROWS
                        with m.If(open_rows[other]):
                            m.d.sync += row.eq(other)
        for unit in range(UNITS):
            self._compare(m, unit, row, reached[unit])
        hit = Signal(ROWS)
        for number in range(ROWS):
            # Row, comparison and flag have a cycle each. `ready` is tested in both later cycles, because the row may be
            # rewritten for the next instruction in between.
            m.d.sync += hit[number].eq(self.ready[number] & (row == number) & reached.all())
            with m.If(~self.ready[number]):
                m.d.sync += self.met[number].eq(0)
            with m.Elif(hit[number]):
                m.d.sync += self.met[number].eq(1)
        return m

    def _compare(self, m: Module, unit: int, row: Signal, reached: Value) -> None:
        """Whether a unit has finished as many instructions as the row waits for."""
        m.submodules[f"waits{unit}"] = waits = self.waits[unit]
        write, read = waits.write_port(), waits.read_port(domain="comb")
        m.d.comb += [
            write.en.eq(self.write & (self.write_unit == unit)),
            write.addr.eq(self.write_row),
            write.data.eq(self.write_wait),
            read.addr.eq(row),
            reached.eq(self.counts[unit] >= read.data),
        ]
        with m.If(self.done[unit]):
            # Cannot wrap within a program: fetch ends it at the last index that COUNT_BITS can number.
            m.d.sync += self.counts[unit].eq(self.counts[unit] + 1)
