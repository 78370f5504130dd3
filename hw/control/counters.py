"""Performance counters, one for every counter register."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.spec.isa import QUEUED_UNITS
from hw.spec.regs import COUNTERS, Stall, stall_counter

COUNTER_BITS = 32

UNIT_EVENTS_LAYOUT = data.StructLayout({"busy": 1, "stall": len(Stall), "waiting": 1, "empty": 1, "done": 1})
"""What a unit and its queue did in a cycle; see `UnitPort` and `UnitQueue`."""


class Counters(wiring.Component):
    """Counts events while a program runs; `launch` sets all to zero.

    A unit is either busy, or stalled for its own reason, or waits for other units, or has no instruction; at most
    one of these counts in a cycle.

    Members
    -------
    launch
        A program starts.
    running
        A program runs.
    read_beat, write_beat
        A word passed on the bus.
    units
        Events of the units, in the order of `QUEUED_UNITS`.
    values
        The counters, in the order of `COUNTERS`.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "launch": In(1),
                "running": In(1),
                "read_beat": In(1),
                "write_beat": In(1),
                "units": In(data.ArrayLayout(UNIT_EVENTS_LAYOUT, len(QUEUED_UNITS))),
                "values": Out(data.ArrayLayout(COUNTER_BITS, len(COUNTERS))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """One incrementer a counter."""
        m = Module()
        events = self._events(m)
        for i, register in enumerate(COUNTERS):
            with m.If(self.launch):
                m.d.sync += self.values[i].eq(0)
            with m.Elif(events[register.name]):
                m.d.sync += self.values[i].eq(self.values[i] + 1)
        return m

    def _events(self, m: Module) -> dict[str, Signal]:
        events = {register.name: Signal(name=register.name.lower()) for register in COUNTERS}
        m.d.comb += [
            events["CYCLES"].eq(self.running),
            events["READ_BEATS"].eq(self.running & self.read_beat),
            events["WRITE_BEATS"].eq(self.running & self.write_beat),
        ]
        for unit in QUEUED_UNITS:
            seen = self.units[unit]
            free = self.running & ~seen.busy
            silent = free & (seen.stall == 0)
            m.d.comb += [
                events[f"{unit.name}_BUSY"].eq(self.running & seen.busy),
                events[f"{unit.name}_DONE"].eq(seen.done),
            ]
            causes = {stall: free & seen.stall[stall] for stall in Stall}
            causes[Stall.WAIT] = silent & seen.waiting
            causes[Stall.NO_INSTRUCTION] = silent & seen.empty
            m.d.comb += [events[stall_counter(unit, stall)].eq(cause) for stall, cause in causes.items()]
        return events
