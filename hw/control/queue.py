"""The units' instruction queues: one memory for all, and a register with the next instruction of each unit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2, exact_log2

from intloom.hw.control.waits import UNIT_SELECT_BITS, UNITS
from intloom.hw.memory.bank import NO_COLLISIONS
from intloom.hw.spec.isa import (
    COUNT_BITS,
    HEADER,
    INSTRUCTION_BITS,
    INSTRUCTION_BYTES,
    INSTRUCTIONS,
    QUEUED_UNITS,
    Unit,
)
from intloom.hw.spec.params import HardwareParams

ENTRY_LAYOUT = data.StructLayout({"instruction": INSTRUCTION_BITS, "index": COUNT_BITS})
"""An instruction without its waits, and its number in the program."""

INDEX_PART_BITS = COUNT_BITS // UNITS
WAIT_WORD_LAYOUT = data.StructLayout({"wait": COUNT_BITS, "index_part": INDEX_PART_BITS})
"""What stands in memory beside an instruction, a word for every unit: its wait, and a part of its number."""

_OPCODE_BITS = HEADER[0].width
_HEADER_BITS = sum(f.width for f in HEADER)


def used_bits(unit: Unit) -> int:
    """Bits of the longest instruction that `unit` runs; above them are zeros."""
    return max(sum(f.width for f in spec.fields) for spec in INSTRUCTIONS if spec.unit is unit)


def kept_bits(unit: Unit) -> tuple[tuple[int, int], ...]:
    """Ranges of bits that a unit has a use for: no waits, and the opcode only where it runs several kinds."""
    kinds = sum(spec.unit is unit for spec in INSTRUCTIONS)
    body = (_HEADER_BITS, used_bits(unit))
    return ((0, _OPCODE_BITS), body) if kinds > 1 else (body,)


@dataclass(frozen=True)
class EntrySlots:
    """Where the words of an instruction stand in its entry: first the waits, then the instruction."""

    word_bits: int

    @property
    def instruction_words(self) -> int:
        """Words of a whole instruction."""
        return 8 * INSTRUCTION_BYTES // self.word_bits

    @property
    def bits(self) -> int:
        """Bits of a place in an entry."""
        return ceil_log2(UNITS + self.instruction_words)

    def last(self, unit: Unit) -> int:
        """The last place that matters to a unit."""
        return UNITS + (used_bits(unit) - 1) // self.word_bits


class QueueWrite(wiring.Signature):
    """How dispatch fills the queues, seen from dispatch.

    While a unit has `room`, words may be written into its next entry, any number of times; `commit` makes it one.
    """

    def __init__(self, params: HardwareParams) -> None:
        super().__init__(
            {
                "room": In(UNITS),
                "valid": Out(1),
                "unit": Out(UNIT_SELECT_BITS),
                "place": Out(EntrySlots(params.axi_data_bits).bits),
                "word": Out(params.axi_data_bits),
                "commit": Out(1),
            }
        )


class InstructionQueues(wiring.Component):
    """Holds `queue_depth` instructions for every unit in order, and one more at hand; it is offered once `met`.

    Whenever a unit has no instruction at hand, the next one comes out of the memory word by word. Waits come first, so
    they are looked at while the rest is on its way.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    write
        From dispatch.
    o
        For each unit its instructions.
    wait, wait_row, wait_unit, wait_value
        A wait that has come out of the memory.
    waits_known, met
        For each unit: the waits of its next instruction have come; they are met.
    waiting
        For each unit: it has instructions, but the first is not offered.
    empty
        For each unit: it has none.
    """

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        self._places = EntrySlots(params.axi_data_bits)
        self._arriving_layout = data.StructLayout(
            {"valid": 1, "unit": UNIT_SELECT_BITS, "place": self._places.bits, "last": 1}
        )
        super().__init__(
            {
                "write": In(QueueWrite(params)),
                "o": Out(stream.Signature(ENTRY_LAYOUT)).array(UNITS),
                "wait": Out(1),
                "wait_row": Out(UNIT_SELECT_BITS),
                "wait_unit": Out(UNIT_SELECT_BITS),
                "wait_value": Out(COUNT_BITS),
                "waits_known": Out(UNITS),
                "met": In(UNITS),
                "waiting": Out(UNITS),
                "empty": Out(UNITS),
            }
        )

    @staticmethod
    def model(unit: Unit, entry: Sequence[int], word_bits: int) -> tuple[int, int]:
        """What a unit is offered of an entry's words: the bits of the instruction that it keeps, and its number."""
        parts = [word >> COUNT_BITS & (1 << INDEX_PART_BITS) - 1 for word in entry[:UNITS]]
        instruction = sum(word << word_bits * place for place, word in enumerate(entry[UNITS:]))
        kept = sum(instruction & (1 << high) - (1 << low) for low, high in kept_bits(unit))
        return kept, sum(part << INDEX_PART_BITS * place for place, part in enumerate(parts))

    def elaborate(self, platform: object) -> Module:
        """Words arrive two cycles after they are asked for, one in a register of the memory's, which is slow.

        `asked` says what comes out of the memory itself, `arriving` what has come.
        """
        m = Module()
        unit, place = Signal(UNIT_SELECT_BITS), Signal(self._places.bits)
        asked, arriving = Signal(self._arriving_layout), Signal(self._arriving_layout)
        m.d.sync += arriving.eq(asked)
        loaded, freed = Signal(UNITS), Signal(UNITS)
        word = self._access(m, unit, place, freed)
        present = self._count(m, freed)
        self._ask(m, present & ~loaded, unit, place, freed, asked, arriving)
        m.d.sync += [
            self.wait.eq(arriving.valid & (arriving.place < UNITS)),
            self.wait_row.eq(arriving.unit),
            self.wait_unit.eq(arriving.place),
            self.wait_value.eq(data.View(WAIT_WORD_LAYOUT, word[: WAIT_WORD_LAYOUT.size]).wait),
        ]
        for u in QUEUED_UNITS:
            self._offer(m, u, arriving, word, loaded[u])
            coming = [stage.valid & (stage.unit == u) for stage in (asked, arriving)]
            m.d.comb += [
                self.empty[u].eq(~present[u] & ~loaded[u] & ~Cat(coming).any()),
                self.waiting[u].eq(~self.empty[u] & ~self.o[u].valid),
            ]
        return m

    def _access(self, m: Module, unit: Signal, place: Signal, freed: Signal) -> Value:
        """The memory, with the entries of each unit in a ring; its word."""
        depth = self._params.queue_depth
        shape, words = unsigned(self._params.axi_data_bits), UNITS * depth << self._places.bits
        m.submodules.memory = memory = Memory(shape=shape, depth=words, init=[], attrs=NO_COLLISIONS)
        write, read = memory.write_port(), memory.read_port(domain="sync")
        ring = data.ArrayLayout(exact_log2(depth), UNITS)
        head, tail = Signal(ring), Signal(ring)
        m.d.comb += [
            write.en.eq(self.write.valid),
            write.addr.eq(Cat(self.write.place, tail[self.write.unit], self.write.unit)),
            write.data.eq(self.write.word),
            read.en.eq(1),
            read.addr.eq(Cat(place, head[unit], unit)),
        ]
        for u in QUEUED_UNITS:
            with m.If(self.write.commit & (self.write.unit == u)):
                m.d.sync += tail[u].eq(tail[u] + 1)
            with m.If(freed[u]):
                m.d.sync += head[u].eq(head[u] + 1)
        word = Signal(shape, reset_less=True)
        m.d.sync += word.eq(read.data)
        return word

    def _count(self, m: Module, freed: Signal) -> Signal:
        """Which units have entries."""
        present = Signal(UNITS)
        for u in QUEUED_UNITS:
            level = Signal(range(self._params.queue_depth + 1), name=f"{u.name.lower()}_level")
            filled = self.write.commit & (self.write.unit == u)
            with m.If(filled & ~freed[u]):
                m.d.sync += level.eq(level + 1)
            with m.Elif(freed[u] & ~filled):
                m.d.sync += level.eq(level - 1)
            m.d.comb += [present[u].eq(level != 0), self.write.room[u].eq(level != self._params.queue_depth)]
        return present

    def _ask(
        self,
        m: Module,
        wanted: Value,
        unit: Signal,
        place: Signal,
        freed: Signal,
        asked: data.View[data.StructLayout],
        arriving: data.View[data.StructLayout],
    ) -> None:
        """Ask for the words of one entry after the other; it is free again when its last word has been asked for."""
        active, last, more = Signal(), Signal(), Signal(UNITS)
        with m.Switch(unit):
            for u in QUEUED_UNITS:
                with m.Case(u):
                    m.d.comb += [last.eq(active & (place == self._places.last(u))), freed[u].eq(last)]
                    # While its last word is on its way, a unit does not count as loaded yet.
                    m.d.comb += more.eq(wanted & ~((asked.last | arriving.last) << u))
        with m.If(active):
            m.d.sync += [place.eq(place + 1), active.eq(~last)]
        with m.Else():
            m.d.sync += [place.eq(0), active.eq(more.any())]
            for u in QUEUED_UNITS:
                with m.If(more[u]):
                    m.d.sync += unit.eq(u)
        m.d.sync += [asked.valid.eq(active), asked.unit.eq(unit), asked.place.eq(place), asked.last.eq(last)]

    def _offer(self, m: Module, unit: Unit, arriving: data.View[data.StructLayout], word: Value, loaded: Value) -> None:
        """Gather a unit's instruction; offer it when it is whole and its waits are met."""
        offered = self.o[unit]
        entry = Signal(ENTRY_LAYOUT, name=f"{unit.name.lower()}_entry", reset_less=True)
        index_part = data.View(WAIT_WORD_LAYOUT, word[: WAIT_WORD_LAYOUT.size]).index_part
        here = Signal(name=f"{unit.name.lower()}_here")
        m.d.comb += here.eq(arriving.valid & (arriving.unit == unit))
        with m.Switch(arriving.place):
            for u in range(UNITS):
                with m.Case(u), m.If(here):
                    m.d.sync += entry.index.word_select(u, INDEX_PART_BITS).eq(index_part)
            for number in range(self._places.last(unit) - UNITS + 1):
                with m.Case(UNITS + number), m.If(here):
                    m.d.sync += self._keep(unit, entry.instruction, number, word)
        with m.If(self.wait & (self.wait_row == unit) & (self.wait_unit == UNITS - 1)):
            m.d.sync += self.waits_known[unit].eq(1)
        with m.If(here & arriving.last):
            m.d.sync += loaded.eq(1)
        with m.If(offered.valid & offered.ready):
            m.d.sync += [loaded.eq(0), self.waits_known[unit].eq(0)]
        m.d.comb += [offered.valid.eq(loaded & self.met[unit]), offered.payload.eq(entry)]

    def _keep(self, unit: Unit, instruction: Value, number: int, word: Value) -> Iterator[Any]:
        """Assignments that keep what the unit needs of its instruction's word."""
        first = number * self._places.word_bits
        for low, high in kept_bits(unit):
            low, high = max(low, first), min(high, first + self._places.word_bits)
            if low < high:
                yield instruction[low:high].eq(word[low - first : high - first])
