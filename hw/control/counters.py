"""Performance counters: a short count for every event, and one memory for their upper bits."""

from __future__ import annotations

from collections.abc import Mapping

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from intloom.hw.memory.bank import NO_COLLISIONS
from intloom.hw.spec.isa import QUEUED_UNITS, Unit
from intloom.hw.spec.regs import COUNTERS, Stall, stall_counter

COUNTER_BITS = 32
TURN_BITS = ceil_log2(len(COUNTERS))
SHORT_BITS = TURN_BITS + 1
"""Bits of a short count: between two of its turns it grows by less than half of its range, or by just half."""

BLOCK_RAM = NO_COLLISIONS | {"ram_style": "block"}
"""Attributes of a memory too small for synthesis to put it into a block RAM by itself."""

UNIT_EVENTS_LAYOUT = data.StructLayout({"busy": 1, "stall": len(Stall), "waiting": 1, "empty": 1, "done": 1})
"""What a unit and its queue did in a cycle; see `UnitPort` and `InstructionQueues`."""


class Counters(wiring.Component):
    """Counts events while a program runs; `launch` sets all to zero.

    A unit is either busy, or stalled for its own reason, or waits for other units, or has no instruction; at most
    one of these counts in a cycle.

    Each event has a short count of its own, which wraps. A memory holds the upper bits of all counters; they take
    turns to be brought up to date, each every `TURNS` cycles, which is sooner than its short count can wrap twice.

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
    turn, value
        A counter, by its place in `COUNTERS`, and what it was `LATENCY` cycles ago. Turns without a counter give 0.
    """

    TURNS = 1 << ceil_log2(len(COUNTERS))
    LATENCY = 3

    def __init__(self) -> None:
        super().__init__(
            {
                "launch": In(1),
                "running": In(1),
                "read_beat": In(1),
                "write_beat": In(1),
                "units": In(data.ArrayLayout(UNIT_EVENTS_LAYOUT, len(QUEUED_UNITS))),
                "turn": Out(TURN_BITS),
                "value": Out(COUNTER_BITS),
            }
        )

    @staticmethod
    def model(unit: Unit, event: Mapping[str, int]) -> list[str]:
        """Names of a unit's counters that grow by what it did in a cycle."""
        names = [f"{unit.name}_DONE"] if event["done"] else []
        if event["busy"]:
            return [*names, f"{unit.name}_BUSY"]
        if event["stall"]:
            return [*names, stall_counter(unit, Stall(event["stall"].bit_length() - 1))]
        if event["waiting"]:
            return [*names, stall_counter(unit, Stall.WAIT)]
        return [*names, stall_counter(unit, Stall.NO_INSTRUCTION)] if event["empty"] else names

    def elaborate(self, platform: object) -> Module:
        """A counter's short count and upper bits are read, wait a cycle in registers, and make its value."""
        m = Module()
        at, next_turn = Signal(TURN_BITS), Signal(TURN_BITS)
        first_round = Signal(init=1)
        with m.If(self.launch):
            m.d.sync += [at.eq(0), first_round.eq(1)]
        with m.Else():
            m.d.sync += at.eq(at + 1)
            with m.If(at == self.TURNS - 1):
                m.d.sync += first_round.eq(0)
        next_low, low = Signal(SHORT_BITS), Signal(SHORT_BITS)
        m.d.sync += [next_turn.eq(at), self.turn.eq(next_turn), next_low.eq(self._short_count(m, at)), low.eq(next_low)]
        self._extend(m, at, first_round, low)
        return m

    def _short_count(self, m: Module, at: Signal) -> Signal:
        """The short count whose turn it is."""
        chosen = Signal(SHORT_BITS)
        events = self._events(m)
        shorts = [Signal(SHORT_BITS, name=f"short_{register.name.lower()}") for register in COUNTERS]
        for short, register in zip(shorts, COUNTERS, strict=True):
            with m.If(self.launch):
                m.d.sync += short.eq(0)
            with m.Elif(events[register.name]):
                m.d.sync += short.eq(short + 1)
        with m.Switch(at):
            for i, short in enumerate(shorts):
                with m.Case(i):
                    m.d.comb += chosen.eq(short)
        return chosen

    def _extend(self, m: Module, at: Signal, first_round: Signal, low: Signal) -> None:
        """Upper bits, and the short count's top bit at its last turn: when that has fallen, the count has wrapped."""
        shape = data.StructLayout({"high": COUNTER_BITS - SHORT_BITS, "top": 1})
        m.submodules.memory = memory = Memory(shape=shape, depth=self.TURNS, init=[], attrs=BLOCK_RAM)
        write, read = memory.write_port(), memory.read_port(domain="sync")
        old, of_first_round = Signal(shape), Signal()
        high = Signal(COUNTER_BITS - SHORT_BITS)
        m.d.comb += [
            read.addr.eq(at),
            high.eq(old.high + (old.top & ~low[-1])),
            self.value.eq(Cat(low, high)),
            write.addr.eq(self.turn),
            write.data.high.eq(high),
            write.data.top.eq(low[-1]),
            write.en.eq(1),
        ]
        m.d.sync += of_first_round.eq(first_round)
        # What the memory holds is of an earlier program, or nothing yet.
        with m.If(of_first_round):
            m.d.sync += old.eq(0)
        with m.Else():
            m.d.sync += old.eq(read.data)

    def _events(self, m: Module) -> dict[str, Signal]:
        """Which counters grow, told by what was seen in the cycle before: it comes from far."""
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
            seen = units[unit]
            free = running & ~seen.busy
            silent = free & (seen.stall == 0)
            m.d.comb += [
                events[f"{unit.name}_BUSY"].eq(running & seen.busy),
                events[f"{unit.name}_DONE"].eq(seen.done),
            ]
            causes = {stall: free & seen.stall[stall] for stall in Stall}
            causes[Stall.WAIT] = silent & seen.waiting
            causes[Stall.NO_INSTRUCTION] = silent & seen.empty
            m.d.comb += [events[stall_counter(unit, stall)].eq(cause) for stall, cause in causes.items()]
        return events
