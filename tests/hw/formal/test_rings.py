"""Proofs about the two queues that lie in rings of block RAM, from reset until each ring has been gone round.

The words' ring is gone round twice; the entries', whose entries take nine cycles each, once, and its slots then hold
a second round.

Nothing in them looks at the words' bits, so all but a few bits of each word are held at zero.
"""

from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Assert, Assume, Cat, Elaboratable, Module, Mux, Signal, Value

from intloom.hw.control.fetch import Fetch, beats_per_instruction
from intloom.hw.control.queue import EntrySlots, InstructionQueues, needed_bits
from intloom.hw.control.waits import UNITS
from intloom.hw.spec.isa import Unit
from intloom.hw.spec.params import HardwareParams, preset
from tests.hw.formal.order import OrderCheck, assert_stream_holds, assume_stream_holds, free_inputs
from tests.hw.formal.prover import prove
from tests.hw.streams import run

pytestmark = pytest.mark.slow
WIDTH = 1
"""Bits of a word that are not zero."""
ROUNDS = 2


class EntriesBench(Elaboratable):
    """Instruction queues filled as dispatch does; one slot of one unit's entries is followed.

    `greedy` breaks dispatch's rule: it commits although a unit has no room.
    """

    def __init__(self, params: HardwareParams, unit: Unit, slot: int, greedy: bool = False) -> None:
        self.params, self.unit, self.slot, self.greedy = params, unit, slot, greedy
        self.slots = EntrySlots(params.word_bits)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queues = queues = InstructionQueues(self.params)
        m.d.comb += list(free_inputs(queues, "write"))
        write = queues.write
        content = Signal(WIDTH)
        m.d.comb += [
            write.valid.eq(AnySeq(1)),
            write.unit.eq(AnySeq(len(write.unit))),
            write.slot.eq(AnySeq(len(write.slot))),
            write.commit.eq(AnySeq(1)),
            content.eq(AnySeq(WIDTH)),
            write.word.eq(content << self._shift()),
        ]
        here = write.unit == self.unit
        if not self.greedy:
            m.d.comb += Assume(~(write.commit | write.valid) | write.not_full.bit_select(write.unit, 1))
        written, last_word, enter = Signal(), Signal(WIDTH), Signal()
        writes = write.valid & here & (write.slot == self.slot)
        m.d.comb += [enter.eq(write.commit & here), Assume(~enter | written | writes)]
        with m.If(writes):
            m.d.sync += last_word.eq(content)
        m.d.sync += written.eq((written | writes) & ~enter)
        leave, leaving = self._leave(m, queues)
        # One entry beside the ring is being taken apart or on offer.
        order = OrderCheck(WIDTH, self.params.queue_depth + 1)
        order.attach(m, enter, Mux(writes, content, last_word), leave, leaving)
        offer, waits = queues.o[self.unit], Signal()
        # The wait board keeps what is met; so an offer once made must stay.
        m.d.sync += waits.eq(offer.valid & ~offer.ready)
        m.d.comb += Assume(~waits | queues.met[self.unit])
        assert_stream_holds(m, offer.valid, offer.ready, offer.payload)
        return m

    def _shift(self) -> int:
        """Bit offset of the content in its word."""
        return 0 if self.slot < UNITS else self._needed() % self.params.word_bits

    def _needed(self) -> int:
        """A bit of the followed word that the unit keeps, and the one above it."""
        first = (self.slot - UNITS) * self.params.word_bits
        return next(max(low, first) for low, high in needed_bits(self.unit) if high - WIDTH >= max(low, first))

    def _leave(self, m: Module, queues: InstructionQueues) -> tuple[Value, Value]:
        """When the followed word comes out, and as what."""
        offer = queues.o[self.unit]
        if self.slot < UNITS:
            comes = queues.wait & (queues.wait_row == self.unit) & (queues.wait_unit == self.slot)
            return comes, queues.wait_value[:WIDTH]
        at = self._needed()
        return offer.valid & offer.ready, offer.payload.instruction[at : at + WIDTH]


QUEUES = preset("large").replace(queue_depth=2)


ENTRIES = QUEUES.queue_depth
ENTRY_CYCLES = 21
"""Cycles in which as many entries as the ring holds can come out, one after the other."""


@pytest.mark.parametrize("slot", [1, UNITS])
def test_entries_come_out_in_order(slot: int, tmp_path: Path) -> None:
    bench = EntriesBench(QUEUES, Unit.MAC, slot)
    assert prove(bench, tmp_path, depth=ENTRY_CYCLES, first=ENTRY_CYCLES - 1).holds


def test_so_many_cycles_go_round_the_entries() -> None:
    queues = InstructionQueues(QUEUES)
    came = 0

    async def fill(ctx: Any) -> None:
        """Entries for one unit, as fast as they are taken in."""
        nonlocal came
        port, offer = queues.write, queues.o[Unit.MAC]
        ctx.set(port.unit, Unit.MAC)
        ctx.set(port.slot, UNITS)
        ctx.set(queues.met, -1)
        ctx.set(offer.ready, 1)
        for _ in range(ENTRY_CYCLES):
            room = ctx.get(port.not_full) >> Unit.MAC & 1
            ctx.set(port.valid, room)
            ctx.set(port.commit, room)
            *_, comes = await ctx.tick().sample(offer.valid)
            came += comes

    run(queues, fill)
    assert came == ENTRIES


def test_the_proof_finds_a_commit_without_room(tmp_path: Path) -> None:
    bench = EntriesBench(QUEUES, Unit.MAC, UNITS, greedy=True)
    assert not prove(bench, tmp_path, depth=ENTRY_CYCLES, whole=True).holds


class FetchBench(Elaboratable):
    """Fetch before a memory that answers every burst in order; `careless` sends words that were not requested."""

    def __init__(self, params: Any, careless: bool = False) -> None:
        self.params, self.careless = params, careless

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.fetch = fetch = Fetch(self.params)
        first_cycle, content = Signal(init=1), Signal(WIDTH)
        m.d.sync += first_cycle.eq(0)
        m.d.comb += [
            fetch.start.eq(first_cycle),
            # From either word of a block on, and longer than any run that is looked at.
            fetch.program.eq(AnyConst(1)),
            fetch.length.eq(CYCLES),
            # The whole memory: a program outside its window is not fetched.
            fetch.window.limit.eq(-1),
            fetch.words.ready.eq(AnySeq(1)),
            fetch.bursts.ready.eq(AnySeq(1)),
            fetch.r.valid.eq(AnySeq(1)),
            content.eq(AnySeq(WIDTH)),
            fetch.r.payload.data.eq(content),
        ]
        assume_stream_holds(m, fetch.r.valid, fetch.r.ready, Cat(content, fetch.r.payload.last))
        assert_stream_holds(m, fetch.bursts.valid, fetch.bursts.ready, fetch.bursts.payload)
        assert_stream_holds(m, fetch.words.valid, fetch.words.ready, fetch.words.payload)
        self._answer(m, fetch)
        leave = fetch.words.valid & fetch.words.ready
        order = OrderCheck(WIDTH, fetch.prefetch_words + 1)
        order.attach(m, fetch.r.valid & fetch.r.ready, content, leave, fetch.words.payload.data[:WIDTH])
        return m

    def _answer(self, m: Module, fetch: Fetch) -> None:
        """Beats come only of bursts that were taken, in their order; the last one of each is marked."""
        lengths = [Signal(range(self.params.burst_words + 1), name=f"length{i}") for i in range(4)]
        asked = fetch.bursts.valid & fetch.bursts.ready
        beat = fetch.r.valid & fetch.r.ready
        ends = beat & (lengths[0] == 1)
        now = [Mux(beat, lengths[0] - 1, lengths[0]), *lengths[1:], 0]
        kept = [Mux(ends, after, before) for before, after in pairwise(now)]
        free = Value.cast(1)
        for length, value in zip(lengths, kept, strict=True):
            m.d.sync += length.eq(Mux(asked & free & (value == 0), fetch.bursts.payload.beats_less_one + 1, value))
            free = free & (value != 0)
        m.d.comb += [Assert(~(asked & free)), fetch.r.payload.last.eq(lengths[0] == 1)]
        if not self.careless:
            m.d.comb += Assume(~fetch.r.valid | (lengths[0] != 0))


SHORT = SimpleNamespace(burst_words=2, word_bits=256, axi_addr_bits=12, word_bytes=32)
"""Shorter blocks than hardware may have, so that a ring is soon gone round."""
RING = 4


@pytest.fixture(autouse=True)
def short_ring(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fetch with a ring of two short blocks."""
    monkeypatch.setattr("intloom.hw.control.fetch.PREFETCH_INSTRUCTIONS", RING // beats_per_instruction(SHORT))


CYCLES = 18


def test_program_words_come_out_in_order(tmp_path: Path) -> None:
    assert prove(FetchBench(SHORT), tmp_path, depth=CYCLES, first=CYCLES - 1).holds


def test_so_many_cycles_go_round_the_words_twice() -> None:
    fetch = Fetch(SHORT)
    assert fetch.prefetch_words == RING
    came = 0

    async def memory(ctx: Any) -> None:
        """Every burst is answered at once, every word taken at once."""
        nonlocal came
        left: list[int] = []
        ctx.set(fetch.length, CYCLES)
        ctx.set(fetch.window.limit, -1)
        ctx.set(fetch.start, 1)
        ctx.set(fetch.words.ready, 1)
        ctx.set(fetch.bursts.ready, 1)
        for _ in range(CYCLES):
            ctx.set(fetch.r.valid, bool(left))
            ctx.set(fetch.r.payload.last, left == [1])
            *_, asked, beats, comes = await ctx.tick().sample(
                fetch.bursts.valid, fetch.bursts.payload.beats_less_one, fetch.words.valid
            )
            ctx.set(fetch.start, 0)
            left = [*([left[0] - 1] if left and left[0] > 1 else []), *left[1:], *([beats + 1] if asked else [])]
            came += comes

    run(fetch, memory)
    assert came >= ROUNDS * RING


def test_the_proof_finds_words_that_were_not_requested(tmp_path: Path) -> None:
    assert not prove(FetchBench(SHORT, careless=True), tmp_path, depth=CYCLES).holds
