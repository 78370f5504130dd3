"""Dispatch: legal instructions reach their queue whole and in order, illegal ones stop the program with their cause."""

import random
from itertools import pairwise
from typing import Any

import pytest
from amaranth.hdl import EnableInserter

from intloom.hw.control.dispatch import Dispatch
from intloom.hw.control.fetch import beats_per_instruction
from intloom.hw.control.queue import WAIT_WORD_LAYOUT, EntrySlots
from intloom.hw.control.waits import UNITS
from intloom.hw.spec import isa
from intloom.hw.spec.fields import HEADER
from intloom.hw.spec.isa import INSTRUCTIONS, QUEUED_UNITS, Instruction, Kind, Unit
from intloom.hw.spec.params import HardwareParams, preset
from intloom.hw.spec.program_check import add_check
from intloom.hw.spec.regs import Cause
from intloom.sim.random_programs.values import any_fields
from tests.hw.streams import made, run, source

GATED = ("small", "large")
"""Presets whose runs stop the clock while the component waits."""
WORK = [s.kind for s in INSTRUCTIONS if s.unit in QUEUED_UNITS]


def _begin(params: HardwareParams) -> Instruction:
    return isa.make("BEGIN", version=isa.ISA_VERSION, fingerprint=params.fingerprint())


def _work(rng: random.Random, params: HardwareParams) -> Instruction:
    kind = rng.choice(WORK)
    waits = {f.name: rng.randint(f.minimum, f.maximum) for f in HEADER[1:]}
    return isa.make(kind, **any_fields(rng, kind, params), **waits)


def _checked(codes: list[bytes]) -> list[bytes]:
    """The instructions with the program check."""
    program = add_check(codes)
    return [program[at : at + isa.INSTRUCTION_BYTES] for at in range(0, len(program), isa.INSTRUCTION_BYTES)]


Bad = tuple[int, int]
"""An instruction's number in its program, and the word of it that carries a bus error; counted from its end if < 0."""


def _words(program: list[bytes], params: HardwareParams, bad: Bad | None = None) -> list[dict[str, int]]:
    """The program's words; one that could not be read has no bit of the program's."""
    size = params.word_bytes
    words = []
    for index, code in enumerate(program):
        for at in range(0, len(code), size):
            error = int(bad is not None and (index, at) == (bad[0], bad[1] * size % len(code)))
            word = int.from_bytes(code[at : at + size], "little") ^ error * ((1 << 8 * size) - 1)
            words.append({"data": word, "error": error})
    return words


class Queues:
    """Stands for the queues: what was committed to each unit, decoded again."""

    def __init__(self, dispatch: Dispatch, params: HardwareParams, rng: random.Random) -> None:
        self.port, self.params, self.rng = dispatch.queues, params, rng
        self.entries: dict[Unit, list[list[int]]] = {u: [] for u in QUEUED_UNITS}
        self.memory: dict[tuple[int, int], int] = {}

    async def serve(self, ctx: Any) -> None:
        port = self.port
        room = 0
        while True:
            ctx.set(port.not_full, room)
            *_, valid, unit, slot, word, commit = await ctx.tick().sample(
                port.valid, port.unit, port.slot, port.word, port.commit
            )
            if valid:
                assert room >> unit & 1, "written without room"
                self.memory[unit, slot] = word
            if commit:
                self.entries[Unit(unit)].append(self._entry(unit))
            # Room may go away with a commit, and comes at random.
            room = (room & ~(commit << unit)) | (1 << self.rng.randrange(UNITS))

    def _entry(self, unit: int) -> list[int]:
        """The words that were written, of waits what counts of them."""
        slots = UNITS + EntrySlots(self.params.axi_data_bits).instruction_words
        words = [self.memory.pop((unit, slot)) for slot in range(slots)]
        return [word % (1 << WAIT_WORD_LAYOUT.size) for word in words[:UNITS]] + words[UNITS:]


def _component(name: str) -> tuple[Dispatch, Any]:
    """The component, and what runs: as in the engine, whose clock gate stops it while it waits."""
    dispatch = Dispatch(preset(name))
    return dispatch, EnableInserter(~dispatch.waiting)(dispatch) if name in GATED else dispatch


def _run(
    name: str, program: list[bytes], seed: int, bad: Bad | None = None, exhausted: bool = False
) -> tuple[dict[Unit, list[list[int]]], tuple[int, int, int] | None]:
    """What reached the queues, and the fault or None when the program ended."""
    rng = random.Random(seed)
    params = preset(name)
    dispatch, design = made(_component, name)
    queues = Queues(dispatch, params, rng)
    words = _words(program, params, bad)
    outcome: list[tuple[int, int, int] | None] = []
    end_waits: dict[Unit, int] = {}

    async def feed(ctx: Any) -> None:
        await source(dispatch.words, words, rng, 0.6)(ctx)
        if exhausted:
            ctx.set(dispatch.exhausted, 1)

    async def watch(ctx: Any) -> None:
        ctx.set(dispatch.running, 1)
        ctx.set(dispatch.all_idle, 1)
        for _ in range(100 * len(words)):
            if ctx.get(dispatch.end_ready):
                await ctx.tick()
                assert end_waits == {u: isa.decode(program[-1])[f"wait_{u.name.lower()}"] for u in QUEUED_UNITS}
                await _end(ctx, dispatch)
                outcome.append(None)
                return
            if ctx.get(dispatch.fault_valid):
                fault = ctx.get(dispatch.fault)
                outcome.append((fault.cause, fault.unit, fault.index))
                assert ctx.get(dispatch.waiting)
                return
            await ctx.tick()
        raise AssertionError("neither end nor fault")

    async def take_down(ctx: Any) -> None:
        """Take END's waits, not each in the first cycle."""
        while True:
            ctx.set(dispatch.end_written, rng.random() < 0.5)
            *_, write, written, unit, wait = await ctx.tick().sample(
                dispatch.end_write, dispatch.end_written, dispatch.end_unit, dispatch.end_wait
            )
            if write and written:
                assert Unit(unit) not in end_waits, "only END has waits here"
                end_waits[Unit(unit)] = wait

    run(design, watch, background=[feed, queues.serve, take_down])
    return queues.entries, outcome[0]


async def _end(ctx: Any, dispatch: Dispatch) -> None:
    """The program ends in the cycle after END's waits are met and all units are idle, not by one of them alone."""
    for met, idle in ((0, 0), (1, 0), (0, 1), (1, 1), (1, 0), (1, 1)):
        ended = ctx.get(dispatch.ended)
        ctx.set(dispatch.end_met, met)
        ctx.set(dispatch.all_idle, idle)
        assert ctx.get(dispatch.waiting) == (ended == (met & idle))
        await ctx.tick()
        assert ctx.get(dispatch.ended) == (met & idle)
        assert ctx.get(dispatch.waiting)


@pytest.mark.parametrize("unit", QUEUED_UNITS)
def test_dispatch_waits_for_words_and_for_space(unit: Unit, rng: random.Random) -> None:
    """`waiting` is high then, and falls with what it waits for: with space in the unit's own queue only."""
    params = preset("nano")
    dispatch = made(Dispatch, params)
    kind = next(spec.kind for spec in INSTRUCTIONS if spec.unit is unit)
    words = _words(_checked([isa.encode(_begin(params)), isa.encode(isa.make(kind))]), params)

    async def offer(ctx: Any, word: dict[str, int]) -> None:
        ctx.set(dispatch.words.payload, word)
        ctx.set(dispatch.words.valid, 1)
        await ctx.tick().until(dispatch.words.ready)
        ctx.set(dispatch.words.valid, 0)

    async def bench(ctx: Any) -> None:
        ctx.set(dispatch.exhausted, 1)
        await ctx.tick()
        assert ctx.get(dispatch.waiting), "no program runs"
        ctx.set(dispatch.exhausted, 0)
        ctx.set(dispatch.running, 1)
        begin = beats_per_instruction(params)
        for number, word in enumerate(words[: begin + 1]):
            if number == begin:
                await ctx.tick().repeat(20)
            assert ctx.get(dispatch.waiting) == (number in (0, begin))
            await offer(ctx, word)
        await ctx.tick().repeat(3)
        for not_full in (0, ~(1 << unit), 1 << unit):
            ctx.set(dispatch.queues.not_full, not_full)
            assert ctx.get(dispatch.waiting) == (not_full != 1 << unit)
            await ctx.tick()
        for word in words[begin + 1 :]:
            ctx.set(dispatch.running, 0)
            await ctx.tick().repeat(3)
            assert not ctx.get(dispatch.words.ready), "no program runs"
            ctx.set(dispatch.running, 1)
            await offer(ctx, word)
        await ctx.tick().until(dispatch.queues.commit)
        assert ctx.get(dispatch.queues.unit) == unit
        await ctx.tick()
        for exhausted in (0, 1):
            ctx.set(dispatch.exhausted, exhausted)
            assert ctx.get(dispatch.waiting) == (not exhausted)

    run(dispatch, bench)


@pytest.mark.parametrize("name", ["nano", "small", "base", "large"])
def test_programs_reach_their_queues(name: str, seed: int) -> None:
    rng = random.Random(seed)
    end = isa.make("END", wait_load=3, wait_mac=5, wait_vec=7, wait_store=9)
    program = _checked(
        [isa.encode(i) for i in (_begin(preset(name)), *(_work(rng, preset(name)) for _ in range(30)), end)]
    )
    found = _run(name, program, seed)
    assert found == Dispatch.model(program, preset(name))
    assert found[1] is None


@pytest.mark.parametrize("name", ["nano", "base"])
def test_an_instruction_takes_its_words_and_the_gap(name: str, rng: random.Random) -> None:
    """When words and room are always there."""
    params = preset(name)
    dispatch = made(Dispatch, params)
    program = _checked([isa.encode(i) for i in (_begin(params), *(_work(rng, params) for _ in range(8)))])
    commits: list[int] = []

    async def watch(ctx: Any) -> None:
        ctx.set(dispatch.running, 1)
        ctx.set(dispatch.queues.not_full, (1 << UNITS) - 1)
        cycle = 0
        while len(commits) < 8:
            commits.extend([cycle] * ctx.get(dispatch.queues.commit))
            await ctx.tick()
            cycle += 1

    run(dispatch, watch, source(dispatch.words, _words(program, params), rng))
    wanted = beats_per_instruction(params) + Dispatch.GAP
    assert [after - before for before, after in pairwise(commits)] == [wanted] * 7


@pytest.mark.parametrize("name", ["nano", "large"])
@pytest.mark.parametrize(
    ("change", "cause", "unit"),
    [
        ("opcode", Cause.BAD_OPCODE, Unit.CONTROL),
        ("past_end", Cause.BAD_FIELD, Unit.STORE),
        ("first word", Cause.FETCH_ERROR, Unit.CONTROL),
        ("middle word", Cause.FETCH_ERROR, Unit.CONTROL),
        ("last word", Cause.FETCH_ERROR, Unit.CONTROL),
        ("word of BEGIN", Cause.FETCH_ERROR, Unit.CONTROL),
        ("end", Cause.NO_END, Unit.CONTROL),
        ("begin", Cause.WRONG_PROGRAM, Unit.CONTROL),
        ("bit", Cause.PROGRAM_CHECK, Unit.CONTROL),
        ("bit of END", Cause.PROGRAM_CHECK, Unit.CONTROL),
        ("bit and last word", Cause.FETCH_ERROR, Unit.CONTROL),
    ],
)
def test_faults_stop_the_program(name: str, change: str, cause: Cause, unit: Unit, seed: int) -> None:
    rng = random.Random(seed)
    program = [isa.encode(i) for i in (_begin(preset(name)), *(_work(rng, preset(name)) for _ in range(6)))]
    at = len(program)
    bad = None
    if change == "opcode":
        program.append(bytes([0x7F]) + bytes(63))
    elif change == "past_end":
        program.append(
            (int.from_bytes(isa.encode(isa.make(Kind.STORE)), "little") | 1 << isa.CHECK_LSB - 1).to_bytes(64, "little")
        )
    elif change.endswith("word"):
        program += [isa.encode(isa.make(Kind.STORE)), isa.encode(isa.make(Kind.LOAD))]
        middle = beats_per_instruction(preset(name)) // 2
        bad = at, {"first": 0, "middle": middle, "last": -1, "bit": -1}[change.split(maxsplit=1)[0]]
    elif change == "word of BEGIN":
        at, bad = 0, (0, 0)
    elif change == "bit":
        program += [isa.encode(isa.make(Kind.STORE)), isa.encode(isa.make(Kind.LOAD))]
    elif change == "bit of END":
        program.append(isa.encode(isa.make(Kind.END)))
    elif change == "begin":
        at = 0
        program = program[1:]
    program = _checked(program)
    if change.startswith("bit"):
        program[at] = (int.from_bytes(program[at], "little") ^ 1 << rng.randrange(512)).to_bytes(64, "little")
    entries, outcome = _run(name, program, seed, bad, exhausted=change == "end")
    assert outcome == (cause, unit, at)
    assert (entries, outcome) == Dispatch.model(program, preset(name), {at} if bad else ())


@pytest.mark.parametrize("first", [(1 << isa.COUNT_BITS) - 6, *(1 << bit for bit in range(isa.COUNT_BITS))])
def test_an_index_has_every_bit(first: int, rng: random.Random) -> None:
    """Entries and faults carry indices that only a long program reaches: dispatch starts at such an index.

    Only at index 0 must an instruction be BEGIN.
    """
    params = preset("nano")
    dispatch = made(Dispatch, params)
    queues = Queues(dispatch, params, rng)
    *program, illegal = _checked([*(isa.encode(_work(rng, params)) for _ in range(3)), bytes([0x7F]) + bytes(63)])

    async def watch(ctx: Any) -> None:
        ctx.set(dispatch.index, first)
        ctx.set(dispatch.running, 1)
        await ctx.tick().until(dispatch.fault_valid)
        fault = ctx.get(dispatch.fault)
        assert (fault.cause, fault.unit, fault.index) == (Cause.BAD_OPCODE, Unit.CONTROL, first + len(program))

    feed = source(dispatch.words, _words([*program, illegal], params), rng)
    run(dispatch, watch, background=[feed, queues.serve])
    found = [entry for entries in queues.entries.values() for entry in entries]
    wanted = [Dispatch.entry(code, first + number, params.word_bytes) for number, code in enumerate(program)]
    assert sorted(found) == sorted(wanted)
