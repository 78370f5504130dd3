"""Performance counters at their full width, for every counter, all events and programs of any length, by induction.

A shadow counts the events of one counter, chosen freely, in all its bits. At the counter's turn in the scan the value
is the shadow's two cycles ago, so nothing is lost between the short counter and the memory of upper bits.
"""

from pathlib import Path
from typing import Any

import pytest
from amaranth.asserts import AnyConst
from amaranth.hdl import Array, Assert, Assume, Cat, Module, Mux, ResetSignal, Signal, Value

from intloom.hw.control.counters import STATES, Counters
from intloom.hw.spec.isa import QUEUED_UNITS
from intloom.hw.spec.regs import COUNTER_BITS, COUNTER_INDEX_BITS, COUNTERS, SHORT_COUNTER_BITS, Stall, stall_counter
from tests.hw.formal.order import FreeBench
from tests.hw.formal.planted import each_night, planted, rebased, with_locals
from tests.hw.formal.prover import prove

pytestmark = pytest.mark.slow


def events(counters: Counters) -> dict[str, Value]:
    """Which counters the inputs of a cycle increment, as the component's documentation states it."""
    running = counters.running
    found: dict[str, Value] = {
        "CYCLES": running,
        "READ_BEATS": running & counters.read_beat,
        "WRITE_BEATS": running & counters.write_beat,
    }
    for unit in QUEUED_UNITS:
        event = counters.units[unit]
        causes = {
            f"{unit.name}_BUSY": event.busy,
            **{stall_counter(unit, s): event.stall[s] for s in Stall if s not in (Stall.WAIT, Stall.NO_INSTRUCTION)},
            stall_counter(unit, Stall.WAIT): event.waiting | event.stall[Stall.WAIT],
            stall_counter(unit, Stall.NO_INSTRUCTION): event.empty | event.stall[Stall.NO_INSTRUCTION],
        }
        free: Value = running
        for name, cause in causes.items():
            found[name] = free & cause
            free = free & ~cause
        found[f"{unit.name}_DONE"] = event.done
    return found


class CheckedCounters(Counters):
    """The counters beside a shadow of one of them."""

    def elaborate(self, platform: object) -> Module:
        m, found = with_locals(super().elaborate, platform)
        chosen = Signal(COUNTER_INDEX_BITS, name="chosen")
        event = Signal(name="chosen_event")
        m.d.comb += [chosen.eq(AnyConst(COUNTER_INDEX_BITS)), Assume(chosen < len(COUNTERS))]
        for unit in QUEUED_UNITS:
            stall = self.units[unit].stall
            # A unit names at most one cause, and none that the queue names.
            m.d.comb += Assume((stall & (stall - 1))[: len(Stall)] == 0)
            m.d.comb += Assume(~stall[Stall.WAIT] & ~stall[Stall.NO_INSTRUCTION])
            m.d.comb += Assume(~(self.units[unit].waiting & self.units[unit].empty))
        happens = events(self)
        m.d.sync += event.eq(Array(happens[register.name] for register in COUNTERS)[chosen])
        shadow, before, earlier = (Signal(COUNTER_BITS, name=name) for name in ("shadow", "before", "earlier"))
        m.d.sync += [
            shadow.eq(Mux(self.launch, 0, shadow + event)),
            before.eq(shadow),
            earlier.eq(before),
        ]
        m.d.comb += Assert((self.scan_index != chosen) | (self.value == earlier))
        self._hypothesis(m, found, chosen, shadow, before, earlier)
        return m

    def _hypothesis(
        self, m: Module, found: dict[str, dict[str, Any]], chosen: Value, shadow: Value, before: Value, earlier: Value
    ) -> None:
        """What induction has to know: what each register of the scan holds of the chosen counter."""
        scan, extend = found["elaborate"], found["_extend"]
        at, read_index, first_scan = scan["at"], scan["read_index"], scan["first_scan"]
        read_low, low, old, in_first_scan = scan["read_low"], scan["low"], extend["old"], extend["in_first_scan"]
        read = Value.cast(extend["read"].data)
        shorts = Array(found["_short_count"]["shorts"])
        powered = Signal()
        m.d.sync += powered.eq(1)
        # A block RAM's output register starts at 0; no reset clears it, so the proof has none.
        m.d.comb += [Assume(~ResetSignal()), Assume(powered | (read == 0))]
        # The count at the last visit since the launch, and the one at the visit before: what the memory held.
        visit, previous, older = (Signal(COUNTER_BITS, name=name) for name in ("visit", "previous", "older"))
        m.d.sync += [previous.eq(visit), older.eq(previous)]
        with m.If(self.launch):
            m.d.sync += visit.eq(0)
        with m.Elif(at == chosen):
            m.d.sync += visit.eq(shadow)
        since_launch = Signal(2)
        with m.If(self.launch):
            m.d.sync += since_launch.eq(0)
        with m.Elif(since_launch != 2):
            m.d.sync += since_launch.eq(since_launch + 1)
        visited = ~first_scan | (at > chosen)
        age = Signal(COUNTER_INDEX_BITS + 1)
        m.d.comb += age.eq((at - chosen - 1)[:COUNTER_INDEX_BITS] + 1)

        def grown(late: Value, early: Value) -> Value:
            return (late - early)[:COUNTER_BITS]

        port = self.upper.read_port(domain="comb")
        m.d.comb += port.addr.eq(chosen)

        def entry(count: Value) -> Value:
            return Cat(count[SHORT_COUNTER_BITS:], count[SHORT_COUNTER_BITS - 1])

        m.d.comb += [
            Assert(shorts[chosen] == Array(STATES)[shadow[:SHORT_COUNTER_BITS]]),
            Assert(Mux(visited, grown(shadow, visit) <= age, (visit == 0) & (shadow <= at))),
            Assert((read_index != chosen) | (read_low == Array(STATES)[before[:SHORT_COUNTER_BITS]])),
            Assert((read_index != chosen) | (grown(before, previous) <= self.SCAN_PERIOD)),
            Assert((read_index != chosen) | Mux(in_first_scan, previous == 0, read == entry(previous))),
            Assert(
                (self.scan_index != chosen)
                | ((low == earlier[:SHORT_COUNTER_BITS]) & (Value.cast(old) == entry(older)))
            ),
            Assert((self.scan_index != chosen) | (grown(earlier, older) <= self.SCAN_PERIOD)),
            Assert((since_launch == 2) | ((at == since_launch) & first_scan)),
            Assert((since_launch != 2) | ~first_scan | (at >= 2)),
            Assert((since_launch == 0) | (read_index == (at - 1)[:COUNTER_INDEX_BITS])),
            Assert((since_launch != 2) | (self.scan_index == (at - 2)[:COUNTER_INDEX_BITS])),
            Assert(~visited | (age != 1) | (visit == before)),
            Assert(~visited | (age != 2) | (visit == earlier)),
            Assert(~visited | (age < 3) | (Value.cast(port.data) == entry(visit))),
        ]


def test_every_counter_is_exact_in_all_of_its_bits(tmp_path: Path) -> None:
    result = prove(FreeBench(CheckedCounters()), tmp_path, depth=2, induction=True, whole=True)
    assert result.holds, result.log


_CARRY = "old.high + (old.top & ~low[-1])"
_FAULTS = {
    "carry of 19 bits": (_CARRY, f"Cat(({_CARRY})[:13], old.high[13:])"),
    "counts of an earlier program": ("m.d.sync += old.eq(0)", "m.d.sync += old.eq(read.data)"),
    "a state without a successor": ("^ ~short[:-1].any()", ""),
    "an event without running": ("eq(self.running & self.read_beat)", "eq(self.read_beat)"),
}  # fmt: skip


@pytest.mark.parametrize("fault", each_night(_FAULTS))
def test_a_faulty_counter_is_refuted(fault: str, tmp_path: Path) -> None:
    faulty = rebased(CheckedCounters, planted(Counters, _FAULTS[fault]))
    assert not prove(FreeBench(faulty()), tmp_path, depth=2, induction=True, whole=True).holds
