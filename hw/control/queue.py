"""The units' instruction queues: one memory for all, and a register for the next instruction of each unit."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2, exact_log2

from intloom.hw.control.waits import UNIT_SELECT_BITS, UNITS
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
from intloom.hw.yosys_attributes import NO_COLLISIONS

ENTRY_LAYOUT = data.StructLayout({"instruction": INSTRUCTION_BITS, "index": COUNT_BITS})
"""An instruction without its waits, and its index in the program."""

INDEX_PART_BITS = COUNT_BITS // UNITS
WAIT_WORD_LAYOUT = data.StructLayout({"wait": COUNT_BITS, "index_part": INDEX_PART_BITS})
"""A word that an entry holds per unit, beside the instruction: the wait on that unit, and a part of the index."""

_OPCODE_BITS = HEADER[0].width
_HEADER_BITS = sum(f.width for f in HEADER)


def used_bits(unit: Unit) -> int:
    """Bits of the longest instruction that `unit` executes; all bits above are zero."""
    return max(sum(f.width for f in spec.fields) for spec in INSTRUCTIONS if spec.unit is unit)


def needed_bits(unit: Unit) -> tuple[tuple[int, int], ...]:
    """Ranges of bits that a unit needs: no waits, and the opcode only if the unit executes several kinds."""
    kinds = sum(spec.unit is unit for spec in INSTRUCTIONS)
    body = (_HEADER_BITS, used_bits(unit))
    return ((0, _OPCODE_BITS), body) if kinds > 1 else (body,)


@dataclass(frozen=True)
class EntrySlots:
    """The slots of a queue entry: first a word per wait, then the words of the instruction."""

    word_bits: int

    @property
    def instruction_words(self) -> int:
        """Words of a whole instruction."""
        return 8 * INSTRUCTION_BYTES // self.word_bits

    @property
    def bits(self) -> int:
        """Width of a slot number."""
        return ceil_log2(UNITS + self.instruction_words)

    def last(self, unit: Unit) -> int:
        """The last slot that `unit` needs."""
        return UNITS + (used_bits(unit) - 1) // self.word_bits


class QueueWrite(wiring.Signature):
    """Write port of the queues, from the side of dispatch.

    While a unit's queue is `not_full`, words may be written into the slots of its next entry, any number of times and
    in any order; `commit` appends the entry to the queue.
    """

    def __init__(self, params: HardwareParams) -> None:
        super().__init__(
            {
                "not_full": In(UNITS),
                "valid": Out(1),
                "unit": Out(UNIT_SELECT_BITS),
                "slot": Out(EntrySlots(params.word_bits).bits),
                "word": Out(params.word_bits),
                "commit": Out(1),
            }
        )


class InstructionQueues(wiring.Component):
    """Queues up to `queue_depth` instructions per unit, and prefetches one more into a register.

    All queues share one memory, one word per slot. When a unit's register is empty, its next entry is read word by
    word. The waits come first, so `WaitChecker` compares them while the instruction is still being read. An instruction
    is offered to its unit when it is complete and its waits are met.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    write
        From dispatch.
    o
        Per unit: its instructions.
    wait, wait_row, wait_unit, wait_value
        A wait that was read, to be written into `WaitChecker`.
    waits_loaded, met
        Per unit: the waits of its next instruction have been read; they are met.
    waiting
        Per unit: it has instructions, but the next one is not offered.
    empty
        Per unit: it has no instruction.

    Handshake
    ---------
    Each `o` is a stream; `valid` never waits for `ready`. `wait` is a pulse per wait. `waits_loaded` of a unit falls
    when its instruction issues.

    Timing
    ------
    One slot is read per cycle, for one unit at a time. From a slot's read request to its word: 2 cycles. Between two
    entries the read port is idle for at least 1 cycle. From the request of an entry's first slot to `o.valid`: at least
    the number of its slots, plus 2 cycles.

    Requirements
    ------------
    Dispatch writes a unit's slots only while `write.not_full` of that unit is high. `met` falls with `waits_loaded`.

    Reset and faults
    ----------------
    Reset empties the queues. No faults.
    """

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        self._slots = EntrySlots(params.word_bits)
        self._arriving_layout = data.StructLayout(
            {"valid": 1, "unit": UNIT_SELECT_BITS, "slot": self._slots.bits, "last": 1}
        )
        super().__init__(
            {
                "write": In(QueueWrite(params)),
                "o": Out(stream.Signature(ENTRY_LAYOUT)).array(UNITS),
                "wait": Out(1),
                "wait_row": Out(UNIT_SELECT_BITS),
                "wait_unit": Out(UNIT_SELECT_BITS),
                "wait_value": Out(COUNT_BITS),
                "waits_loaded": Out(UNITS),
                "met": In(UNITS),
                "waiting": Out(UNITS),
                "empty": Out(UNITS),
            }
        )

    @staticmethod
    def model(unit: Unit, entry: Sequence[int], word_bits: int) -> tuple[int, int]:
        """What a unit is offered of an entry's words: the bits of the instruction that it needs, and its index."""
        parts = [word >> COUNT_BITS & (1 << INDEX_PART_BITS) - 1 for word in entry[:UNITS]]
        instruction = sum(word << word_bits * number for number, word in enumerate(entry[UNITS:]))
        needed = sum(instruction & (1 << high) - (1 << low) for low, high in needed_bits(unit))
        return needed, sum(part << INDEX_PART_BITS * number for number, part in enumerate(parts))

    def elaborate(self, platform: object) -> Module:
        """Read entries in two stages: `requested` accompanies the memory, `arriving` its output register."""
        m = Module()
        self._unit, self._slot = Signal(UNIT_SELECT_BITS, name="unit"), Signal(self._slots.bits, name="slot")
        self._requested = requested = Signal(self._arriving_layout, name="requested")
        self._arriving = arriving = Signal(self._arriving_layout, name="arriving")
        m.d.sync += arriving.eq(requested)
        loaded, self._freed = Signal(UNITS), Signal(UNITS, name="freed")
        word = self._access(m)
        present = self._count(m)
        self._read_entries(m, present & ~loaded)
        m.d.sync += [
            # Registered: on the way to the memories of waits, `Engine` selects between these waits and those of END.
            self.wait.eq(arriving.valid & (arriving.slot < UNITS)),
            self.wait_row.eq(arriving.unit),
            self.wait_unit.eq(arriving.slot),
            self.wait_value.eq(data.View(WAIT_WORD_LAYOUT, word[: WAIT_WORD_LAYOUT.size]).wait),
        ]
        for u in QUEUED_UNITS:
            self._offer(m, u, word, loaded[u])
            in_flight = [stage.valid & (stage.unit == u) for stage in (requested, arriving)]
            m.d.comb += [
                self.empty[u].eq(~present[u] & ~loaded[u] & ~Cat(in_flight).any()),
                self.waiting[u].eq(~self.empty[u] & ~self.o[u].valid),
            ]
        return m

    def _access(self, m: Module) -> Value:
        """The memory, with a ring of entries per unit; returns the word that was read."""
        depth = self._params.queue_depth
        shape, words = unsigned(self._params.word_bits), UNITS * depth << self._slots.bits
        # One memory for all units: separate queues with wait comparators of their own took 3,400 LUT sites more.
        m.submodules.memory = memory = Memory(shape=shape, depth=words, init=[], attrs=NO_COLLISIONS)
        write, read = memory.write_port(), memory.read_port(domain="sync")
        ring = data.ArrayLayout(exact_log2(depth), UNITS)
        head, tail = Signal(ring), Signal(ring)
        m.d.comb += [
            write.en.eq(self.write.valid),
            write.addr.eq(Cat(self.write.slot, tail[self.write.unit], self.write.unit)),
            write.data.eq(self.write.word),
            # `arriving` tells which words count, so the port needs no enable.
            read.en.eq(1),
            read.addr.eq(Cat(self._slot, head[self._unit], self._unit)),
        ]
        for u in QUEUED_UNITS:
            with m.If(self.write.commit & (self.write.unit == u)):
                m.d.sync += tail[u].eq(tail[u] + 1)
            with m.If(self._freed[u]):
                m.d.sync += head[u].eq(head[u] + 1)
        # A register after the memory: the path from block RAM to the entry registers is too long for one cycle.
        word = Signal(shape, reset_less=True)
        m.d.sync += word.eq(read.data)
        return word

    def _count(self, m: Module) -> Signal:
        """Count entries per unit; returns which units have any."""
        present = Signal(UNITS)
        for u in QUEUED_UNITS:
            level = Signal(range(self._params.queue_depth + 1), name=f"{u.name.lower()}_level")
            filled = self.write.commit & (self.write.unit == u)
            with m.If(filled & ~self._freed[u]):
                m.d.sync += level.eq(level + 1)
            with m.Elif(self._freed[u] & ~filled):
                m.d.sync += level.eq(level - 1)
            m.d.comb += [present[u].eq(level != 0), self.write.not_full[u].eq(level != self._params.queue_depth)]
        return present

    def _read_entries(self, m: Module, wanted: Value) -> None:
        """Request the slots of one entry after the other; the request of the last slot frees the entry."""
        unit, slot, requested, arriving = self._unit, self._slot, self._requested, self._arriving
        active, last, eligible = Signal(), Signal(), Signal(UNITS)
        with m.Switch(unit):
            for u in QUEUED_UNITS:
                with m.Case(u):
                    m.d.comb += [last.eq(active & (slot == self._slots.last(u))), self._freed[u].eq(last)]
                    # `loaded` rises 2 cycles after the last request: until then exclude this unit explicitly.
                    m.d.comb += eligible.eq(wanted & ~((requested.last | arriving.last) << u))
        with m.If(active):
            m.d.sync += [slot.eq(slot + 1), active.eq(~last)]
        with m.Else():
            m.d.sync += [slot.eq(0), active.eq(eligible.any())]
            for u in QUEUED_UNITS:
                with m.If(eligible[u]):
                    m.d.sync += unit.eq(u)
        m.d.sync += [
            requested.valid.eq(active),
            requested.unit.eq(unit),
            requested.slot.eq(slot),
            requested.last.eq(last),
        ]

    def _offer(self, m: Module, unit: Unit, word: Value, loaded: Value) -> None:
        """Assemble a unit's instruction; offer it when it is complete and its waits are met."""
        offered, arriving = self.o[unit], self._arriving
        entry = Signal(ENTRY_LAYOUT, name=f"{unit.name.lower()}_entry", reset_less=True)
        index_part = data.View(WAIT_WORD_LAYOUT, word[: WAIT_WORD_LAYOUT.size]).index_part
        arrives = Signal(name=f"{unit.name.lower()}_arrives")
        m.d.comb += arrives.eq(arriving.valid & (arriving.unit == unit))
        with m.Switch(arriving.slot):
            for u in range(UNITS):
                with m.Case(u), m.If(arrives):
                    m.d.sync += entry.index.word_select(u, INDEX_PART_BITS).eq(index_part)
            for number in range(self._slots.last(unit) - UNITS + 1):
                with m.Case(UNITS + number), m.If(arrives):
                    m.d.sync += self._store(unit, entry.instruction, number, word)
        with m.If(self.wait & (self.wait_row == unit) & (self.wait_unit == UNITS - 1)):
            m.d.sync += self.waits_loaded[unit].eq(1)
        with m.If(arrives & arriving.last):
            m.d.sync += loaded.eq(1)
        with m.If(offered.valid & offered.ready):
            m.d.sync += [loaded.eq(0), self.waits_loaded[unit].eq(0)]
        # `met` stays high until `waits_loaded` falls, so the offer is stable until the unit takes it.
        m.d.comb += [offered.valid.eq(loaded & self.met[unit]), offered.payload.eq(entry)]

    def _store(self, unit: Unit, instruction: Value, number: int, word: Value) -> Iterator[Any]:
        """Yield assignments that store the bits of an instruction word that the unit needs."""
        first = number * self._slots.word_bits
        for low, high in needed_bits(unit):
            low, high = max(low, first), min(high, first + self._slots.word_bits)
            if low < high:
                yield instruction[low:high].eq(word[low - first : high - first])
