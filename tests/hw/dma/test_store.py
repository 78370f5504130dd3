"""The store unit: every word in its burst under random back-pressure, done only after the response, a beat a cycle."""

import random
from itertools import count, pairwise
from typing import Any

import pytest
from amaranth.hdl import Cat

from intloom.hw.bus.axi4 import Resp
from intloom.hw.dma.front_end import MoveFrontEnd
from intloom.hw.dma.store import StoreUnit
from intloom.hw.ports import READ_LATENCY
from intloom.hw.spec import isa
from intloom.hw.spec.params import HardwareParams, preset
from intloom.hw.spec.regs import Cause
from tests.hw.dma.accounting import Accounts
from tests.hw.dma.memory_model import content
from tests.hw.dma.moves import set_window
from tests.hw.dma.test_load import BASE, BASES, WIDE, Stop, first_address, index_of, local_words, random_move
from tests.hw.protocols import check_burst
from tests.hw.streams import made, run

NANO = preset("nano")


class StoreBench:
    """A store unit between a scratchpad whose words are hashed addresses and a memory that records."""

    def __init__(self, params: HardwareParams, moves: list[isa.Instruction], rng: random.Random, rate: float) -> None:
        self.unit = made(StoreUnit, params)
        self.params, self.moves, self.rng, self.rate = params, moves, rng, rate
        self.bursts: list[tuple[int, int]] = []
        self.words: list[tuple[int, int]] = []
        self.answered = 0
        self.errors: dict[int, int] = {}
        """Responses other than OKAY, by the number of the burst."""
        self.done_after: list[int] = []
        self.masked_beats = False
        """Whether beats may have all strobes low."""
        self.cycles = 0

    async def offer(self, ctx: Any) -> None:
        port = self.unit.unit
        set_window(ctx, self.unit.window, BASE)
        for number, move in enumerate(self.moves):
            if self.rate < 1 and number == len(self.moves) // 2:
                # With nothing in flight, for more cycles than there are credits.
                ctx.set(port.valid, 0)
                await ctx.tick().until(port.idle)
                await ctx.tick().repeat(40)
            ctx.set(port.instruction, int.from_bytes(isa.encode(move), "little"))
            ctx.set(port.index, index_of(number))
            ctx.set(port.valid, 1)
            await ctx.tick().until(port.ready)
        ctx.set(port.valid, 0)
        while len(self.done_after) < len(self.moves):
            await ctx.tick()
        await ctx.tick()
        assert ctx.get(port.idle)
        assert not ctx.get(port.fault)

    async def scratchpad(self, ctx: Any) -> None:
        scratch = self.unit.scratch
        pipeline = [0] * READ_LATENCY
        while True:
            ctx.set(scratch.ready, int(self.rng.random() < self.rate))
            ctx.set(scratch.data, pipeline[-1])
            *_, asked, addr = await ctx.tick().sample(scratch.valid & scratch.ready, scratch.addr)
            pipeline = [content(addr, self.params) if asked else 0xBAD, *pipeline[:-1]]

    async def memory(self, ctx: Any) -> None:
        unit = self.unit
        beats: list[tuple[int, int]] = []
        owed = 0
        while True:
            ctx.set(unit.aw.ready, int(self.rng.random() < self.rate))
            ctx.set(unit.w.ready, int(self.rng.random() < self.rate))
            ctx.set(unit.b.valid, int(owed > 0 and self.rng.random() < self.rate))
            ctx.set(unit.b.payload.resp, self.errors.get(self.answered, 0))
            *_, offered, addressed, aw, sent, w, accepts, answered, done = await ctx.tick().sample(
                unit.aw.valid,
                unit.aw.valid & unit.aw.ready,
                unit.aw.payload,
                unit.w.valid & unit.w.ready,
                unit.w.payload,
                unit.b.ready,
                unit.b.valid & unit.b.ready,
                unit.unit.done,
            )
            self.cycles += 1
            assert offered or len(self.bursts) > self.answered or not accepts, "a response to no burst is not accepted"
            if done:
                self.done_after.append(self.answered)
            if addressed:
                check_burst(aw, self.params.word_bytes)
                self.bursts.append((aw.addr // self.params.word_bytes, aw.len + 1))
                beats += [(self.bursts[-1][0] + i, i == aw.len) for i in range(aw.len + 1)]
            if sent:
                at, last = beats.pop(0)
                assert w.last == last
                assert w.strb == (1 << self.params.word_bytes) - 1 or (self.masked_beats and not w.strb)
                if w.strb:
                    self.words.append((at, w.data))
                owed += last
            if answered:
                owed -= 1
                self.answered += 1


def accounts(unit: StoreUnit) -> Accounts:
    """The checks of a store unit's reports."""
    return Accounts(unit.unit, unit.w.valid & unit.w.ready, idle_is_last=True)


def _simulate(params: HardwareParams, moves: list[isa.Instruction], seed: int, rate: float) -> StoreBench:
    bench = StoreBench(params, moves, random.Random(seed), rate)
    unit = bench.unit
    run(unit, bench.offer, background=[bench.scratchpad, bench.memory, accounts(unit).check])
    return bench


@pytest.mark.parametrize("name", ["nano", "base"])
def test_every_word_reaches_memory_in_legal_bursts(name: str, seed: int) -> None:
    rng = random.Random(seed)
    params = preset(name).replace(axi_burst=rng.choice([4, 16, 64]), axi_outstanding=rng.choice([1, 2, 8]))
    moves = [random_move(rng, "STORE", params) for _ in range(10)]
    bench = _simulate(params, moves, seed, rate=0.7)
    page = 4096 // params.word_bytes
    assert all(at // page == (at + beats - 1) // page and beats <= params.axi_burst for at, beats in bench.bursts)
    moved = [local_words(m) for m in moves]
    assert bench.words == [(BASE + dram, content(local, params)) for words in moved for dram, local in words]
    ends, bursts = [], iter(bench.bursts)
    count = 0
    for words in moved:
        left = len(words)
        while left:
            left -= next(bursts)[1]
            count += 1
        assert left == 0, "a burst must not reach into the next instruction"
        ends.append(count)
    assert bench.done_after == ends, "done must come in the cycle after the last response"


def test_the_longest_bursts_have_all_of_their_beats(seed: int) -> None:
    """AXI4's longest burst; each beat has the word of its address, and the last one its mark."""
    params = preset("nano").replace(axi_burst=256)
    moves = [isa.make("STORE", dram=0, local=5, n0=700)]
    bench = _simulate(params, moves, seed, rate=1.0)
    assert max(beats for _, beats in bench.bursts) == params.axi_burst
    assert bench.words == [(BASE + dram, content(local, params)) for dram, local in local_words(moves[0])]


def test_a_beat_a_cycle(seed: int) -> None:
    params = preset("base")
    moves = [isa.make("STORE", dram=96 * i, local=5, n0=24, n1=4, dram_s1=24, local_s1=30) for i in range(12)]
    bench = _simulate(params, moves, seed, rate=1.0)
    busy = len(bench.words) / bench.cycles
    print(f"{busy:.3f} beats a cycle")
    assert busy >= 0.95


@pytest.mark.parametrize("words", [24, 25])
def test_equal_instructions_are_taken_at_equal_intervals(words: int, rng: random.Random) -> None:
    """Without pauses of the bus and the scratchpad nothing but the words delays an instruction."""
    moves = [isa.make("STORE", dram=64, local=5, n0=words)] * 160
    bench = StoreBench(preset("nano"), moves, rng, rate=1.0)
    port = bench.unit.unit
    taken: list[int] = []

    async def watch(ctx: Any) -> None:
        async for *_, takes in ctx.tick().sample(port.valid & port.ready):
            taken.extend([bench.cycles] * takes)

    run(bench.unit, bench.offer, background=[bench.scratchpad, bench.memory, watch])
    intervals = [after - before for before, after in pairwise(taken)]
    # The first instructions fill the FIFOs. A credit that is lost meanwhile delays one of 64 instructions.
    assert set(intervals[-130:]) == {words}


MOVES = [isa.make("STORE", dram=64 * k + 3, local=20 * k, n0=6, n1=2, dram_s1=9, local_s1=7) for k in range(4)]
BURSTS = 4
"""Bursts of each of these moves: every run crosses one boundary of a block of 4 words."""


def _stopped(rng: random.Random, errors: dict[int, int], halt_at: int | None) -> tuple[StoreBench, Stop]:
    params = preset("nano").replace(axi_burst=4, axi_outstanding=rng.choice([1, 4]))
    bench = StoreBench(params, MOVES, rng, 0.7)
    bench.errors = errors
    unit = bench.unit
    stop = Stop(unit.unit, unit.aw.valid & unit.aw.ready, unit.b.valid & unit.b.ready, halt_at)

    async def offer(ctx: Any) -> None:
        await stop.offer(ctx, MOVES, unit.window)

    run(unit, offer, background=[bench.scratchpad, bench.memory, stop.count, accounts(unit).check])
    moved = [(BASE + dram, content(local, params)) for m in MOVES for dram, local in MoveFrontEnd.model(m)]
    assert bench.words == moved[: len(bench.words)]
    assert bench.answered == len(bench.bursts), "every issued burst is completed"
    return bench, stop


@pytest.mark.parametrize("number", [0, 2, 3], ids=["first", "middle", "last"])
def test_an_error_response_stops_its_instruction(number: int, rng: random.Random) -> None:
    """To its first, a middle and its last burst: cause and index, and no `done` of it or of a later instruction."""
    for at, response in ((0, 2), (1, 3), (BURSTS - 1, 2 + number % 2)):
        cause = {2: Cause.WRITE_SLVERR, 3: Cause.WRITE_DECERR}[response]
        bench, stop = _stopped(rng, {BURSTS * number + at: response}, None)
        assert stop.fault == (cause, index_of(number)), at
        assert bench.done_after == [BURSTS * (k + 1) for k in range(number)]


@pytest.mark.parametrize("name", ["nano", "base"])
@pytest.mark.parametrize("number", [0, 2, 3], ids=["first", "middle", "last"])
def test_an_address_outside_the_scratchpad_stops_its_instruction(name: str, number: int, rng: random.Random) -> None:
    """Words from outside are not written: the strobes of their beats are low."""
    params = preset(name).replace(axi_burst=4)
    moves = list(MOVES)
    moves[number] = isa.make("STORE", dram=7, local=params.scratch_words - 2, n0=6)
    bench = StoreBench(params, moves, rng, 0.7)
    unit = bench.unit
    bench.masked_beats = True
    stop = Stop(unit.unit, unit.aw.valid & unit.aw.ready, unit.b.valid & unit.b.ready)

    async def offer(ctx: Any) -> None:
        await stop.offer(ctx, moves, unit.window)

    run(unit, offer, background=[bench.scratchpad, bench.memory, stop.count])
    assert stop.fault == (Cause.SCRATCH_RANGE, index_of(number))
    words = [word for move in moves[: number + 1] for word in MoveFrontEnd.model(move)]
    expected = [(BASE + dram, content(local, params)) for dram, local in words if local < params.scratch_words]
    assert bench.words == expected[: len(bench.words)]
    assert len(bench.done_after) <= number


def test_a_halt_at_any_time_completes_what_was_issued(rng: random.Random) -> None:
    for halt_at in (2, 5, *rng.sample(range(8, 70), 3)):
        bench, stop = _stopped(rng, {}, halt_at)
        assert stop.fault is None, halt_at
        assert len(bench.done_after) == bench.answered // BURSTS


@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ({"dram": 8, "n0": 1, "n1": 8, "dram_s1": 8}, Cause.OUTSIDE_WINDOW),
        ({"dram": 8, "local": NANO.scratch_words - 16, "n0": 17}, Cause.SCRATCH_RANGE),
    ],
)
def test_the_first_fault_counts_and_in_one_cycle_that_of_the_earlier_instruction(
    fields: dict[str, int], cause: Cause
) -> None:
    """An error response to the first store, at each time around the second one's fault."""
    unit, limit = made(StoreUnit, NANO), 64
    inside, leaving = isa.make("STORE", n0=1), isa.make("STORE", **fields)

    def raised(answer_at: int) -> tuple[int, int, int]:
        """Cycle, cause and instruction of the fault."""
        found = list[tuple[int, int, int]]()

        async def offer(ctx: Any) -> None:
            set_window(ctx, unit.window, BASE, limit)
            for number, move in enumerate((inside, leaving)):
                ctx.set(unit.unit.instruction, int.from_bytes(isa.encode(move), "little"))
                ctx.set(unit.unit.index, index_of(number))
                ctx.set(unit.unit.valid, 1)
                await ctx.tick().until(unit.unit.ready)
            ctx.set(unit.unit.valid, 0)
            await ctx.tick().until(unit.unit.fault)
            # The other fault comes meanwhile, if the error response was the first one.
            await ctx.tick().repeat(20)
            assert (ctx.get(unit.unit.cause), ctx.get(unit.unit.fault_index)) == found[0][1:]

        async def memory(ctx: Any) -> None:
            ctx.set(unit.scratch.ready, 1)
            ctx.set(Cat(unit.aw.ready, unit.w.ready), 0b11)
            ctx.set(unit.b.payload.resp, Resp.SLVERR)
            for cycle in count():
                ctx.set(unit.b.valid, cycle == answer_at)
                port = unit.unit
                *_, fault, reported, index = await ctx.tick().sample(port.fault, port.cause, port.fault_index)
                found.extend([(cycle, reported, index)] * (fault and not found))

        run(unit, offer, background=[memory])
        return found[0]

    outside, *reported = raised(-1)
    assert reported == [cause, index_of(1)]
    # A response in cycle n raises its fault in cycle n + 1.
    for cycle in range(outside - 4, outside + 1):
        answered, left = (cycle + 1, Cause.WRITE_SLVERR, index_of(0)), (outside, cause, index_of(1))
        expected = answered if cycle < outside else left
        assert raised(cycle) == expected, cycle - outside


@pytest.mark.parametrize("base", BASES)
def test_every_bit_of_the_base_reaches_the_address(base: int) -> None:
    unit = made(StoreUnit, WIDE)
    assert first_address(unit, "STORE", unit.aw, base) == base * WIDE.word_bytes
