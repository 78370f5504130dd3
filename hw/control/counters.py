"""Performance counters: a short counter per event, and one memory for the upper bits of all."""

from collections.abc import Mapping
from itertools import accumulate

from amaranth.hdl import Array, Cat, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from intloom.hw.spec.isa import QUEUED_UNITS, Unit
from intloom.hw.spec.regs import COUNTER_BITS, COUNTER_INDEX_BITS, COUNTERS, SHORT_COUNTER_BITS, Stall, stall_counter
from intloom.hw.yosys_attributes import NO_COLLISIONS

UNIT_EVENTS_LAYOUT = data.StructLayout({"busy": 1, "stall": len(Stall), "waiting": 1, "empty": 1, "done": 1})
"""Events of a unit and its queue in one cycle; see `UnitPort` and `InstructionQueues`."""


_UPPER_LAYOUT = data.StructLayout({"high": COUNTER_BITS - SHORT_COUNTER_BITS, "top": 1})
"""An entry of the memory: upper bits, and the top bit of the short counter at its last visit."""


def _shift(state: int) -> int:
    """The next state of a short counter, as `_short_count` shifts it."""
    top, second, lower = state >> SHORT_COUNTER_BITS - 1, state >> SHORT_COUNTER_BITS - 2 & 1, state << 1
    return (lower | top ^ second ^ (lower % (1 << SHORT_COUNTER_BITS) == 0)) % (1 << SHORT_COUNTER_BITS)


STATES = tuple(accumulate(range((1 << SHORT_COUNTER_BITS) - 1), lambda state, _: _shift(state), initial=0))
"""States of a short counter by its count: a de Bruijn sequence, so that all counts occur."""
assert len(set(STATES)) == 1 << SHORT_COUNTER_BITS and _shift(STATES[-1]) == 0, "these bits need other taps"


class Counters(wiring.Component):
    """Counts events while a program runs.

    Per unit and cycle at most one of these counts: busy, stalled for a cause of its own, waiting for other units, no
    instruction. Each event has a short counter, which wraps. A memory holds the upper bits of all counters and is
    updated by a round-robin scan. The scan visits each counter every `SCAN_PERIOD` cycles, before its short counter can
    wrap twice. A short counter is a shift register with feedback, which takes two LUTs; the scan decodes its state.

    Members
    -------
    launch
        A program starts: all counters become 0.
    running
        A program runs: events count.
    read_beat, write_beat
        A data beat transferred on the bus.
    units
        Events of the units, in the order of `QUEUED_UNITS`.
    scan_index, value
        The counter that the scan visits, by its index in `COUNTERS`, and its value. Unused indices read 0.

    Handshake
    ---------
    None. `launch` is a pulse. `scan_index` and `value` change every cycle; a reader waits for its index.

    Timing
    ------
    `value` is the count of the events up to `LATENCY` = 3 cycles ago. A counter is visited every `SCAN_PERIOD` cycles:
    the number of counters, rounded up to a power of two.

    Requirements
    ------------
    None.

    Reset and faults
    ----------------
    The soft reset does not reach this component: counters keep their values after a program's end, until the next
    `launch`. No faults.
    """

    SCAN_PERIOD = 1 << COUNTER_INDEX_BITS
    LATENCY = 3

    def __init__(self) -> None:
        super().__init__(
            {
                "launch": In(1),
                "running": In(1),
                "read_beat": In(1),
                "write_beat": In(1),
                "units": In(data.ArrayLayout(UNIT_EVENTS_LAYOUT, len(QUEUED_UNITS))),
                "scan_index": Out(COUNTER_INDEX_BITS),
                "value": Out(COUNTER_BITS),
            }
        )
        # An attribute, because tests write counts that no simulation reaches.
        self.upper = Memory(shape=_UPPER_LAYOUT, depth=self.SCAN_PERIOD, init=[], attrs=NO_COLLISIONS)

    @staticmethod
    def model(unit: Unit, event: Mapping[str, int]) -> list[str]:
        """Names of the unit's counters that the events of one cycle increment."""
        names = [f"{unit.name}_DONE"] if event["done"] else []
        if event["busy"]:
            return [*names, f"{unit.name}_BUSY"]
        if event["stall"]:
            return [*names, stall_counter(unit, Stall(event["stall"].bit_length() - 1))]
        if event["waiting"]:
            return [*names, stall_counter(unit, Stall.WAIT)]
        return [*names, stall_counter(unit, Stall.NO_INSTRUCTION)] if event["empty"] else names

    def elaborate(self, platform: object) -> Module:
        """Scan the counters: read short counter and upper bits, register both, combine them."""
        m = Module()
        at, read_index = Signal(COUNTER_INDEX_BITS), Signal(COUNTER_INDEX_BITS)
        first_scan = Signal(init=1)
        with m.If(self.launch):
            m.d.sync += [at.eq(0), first_scan.eq(1)]
        with m.Else():
            m.d.sync += at.eq(at + 1)
            with m.If(at == self.SCAN_PERIOD - 1):
                m.d.sync += first_scan.eq(0)
        # Two stages, as many as the upper bits take through the memory and the register behind it.
        read_low, low = Signal(SHORT_COUNTER_BITS), Signal(SHORT_COUNTER_BITS)
        m.d.sync += [
            read_index.eq(at),
            self.scan_index.eq(read_index),
            read_low.eq(self._short_count(m, at)),
            low.eq(Array(STATES.index(state) for state in range(len(STATES)))[read_low]),
        ]
        self._extend(m, at, first_scan, low)
        return m

    def _short_count(self, m: Module, at: Signal) -> Signal:
        """The state of the short counter that the scan visits."""
        selected = Signal(SHORT_COUNTER_BITS)
        events = self._events(m)
        shorts = [Signal(SHORT_COUNTER_BITS, name=f"short_{register.name.lower()}") for register in COUNTERS]
        for short, register in zip(shorts, COUNTERS, strict=True):
            with m.If(self.launch):
                m.d.sync += short.eq(0)
            with m.Elif(events[register.name]):
                m.d.sync += short.eq(Cat(short[-1] ^ short[-2] ^ ~short[:-1].any(), short))
        with m.Switch(at):
            for i, short in enumerate(shorts):
                with m.Case(i):
                    m.d.comb += selected.eq(short)
        return selected

    def _extend(self, m: Module, at: Signal, first_scan: Signal, low: Signal) -> None:
        """Store upper bits and the short counter's top bit: if it fell since the last visit, the counter wrapped."""
        # An index is written 2 cycles after it was read. Only in the cycles after `launch` can a read and a write meet,
        # and the first scan ignores what it reads: NO_COLLISIONS holds.
        m.submodules.memory = memory = self.upper
        write, read = memory.write_port(), memory.read_port(domain="sync")
        # Set by reset: a reset of one cycle leaves what the memory read before it in the read register.
        old, in_first_scan = Signal(_UPPER_LAYOUT), Signal(init=1)
        high = Signal(COUNTER_BITS - SHORT_COUNTER_BITS)
        m.d.comb += [
            read.addr.eq(at),
            high.eq(old.high + (old.top & ~low[-1])),
            self.value.eq(Cat(low, high)),
            write.addr.eq(self.scan_index),
            write.data.high.eq(high),
            write.data.top.eq(low[-1]),
            write.en.eq(1),
        ]
        m.d.sync += in_first_scan.eq(first_scan)
        # In the first scan after `launch` the memory holds counts of an earlier program: read it as 0, so that no
        # cycles are spent on clearing it.
        with m.If(in_first_scan):
            m.d.sync += old.eq(0)
        with m.Else():
            m.d.sync += old.eq(read.data)

    def _events(self, m: Module) -> dict[str, Signal]:
        """Which counters increment. All inputs are registered first: they have long routing delays from the units."""
        events = {register.name: Signal(name=register.name.lower()) for register in COUNTERS}
        running, units = Signal(), Signal.like(self.units)
        m.d.sync += [
            running.eq(self.running),
            units.eq(self.units),
            events["READ_BEATS"].eq(self.running & self.read_beat),
            events["WRITE_BEATS"].eq(self.running & self.write_beat),
        ]
        m.d.comb += events["CYCLES"].eq(running)
        for unit in QUEUED_UNITS:
            event = units[unit]
            not_busy = running & ~event.busy
            no_stall = not_busy & (event.stall == 0)
            m.d.comb += [
                events[f"{unit.name}_BUSY"].eq(running & event.busy),
                events[f"{unit.name}_DONE"].eq(event.done),
            ]
            causes = {stall: not_busy & event.stall[stall] for stall in Stall}
            causes[Stall.WAIT] = no_stall & event.waiting
            causes[Stall.NO_INSTRUCTION] = no_stall & event.empty
            m.d.comb += [events[stall_counter(unit, stall)].eq(cause) for stall, cause in causes.items()]
        return events
